SELECT unit, stddev(pay), variance(pay) FROM staff GROUP BY unit OFFSET 1 FETCH FIRST 2 ROWS ONLY
