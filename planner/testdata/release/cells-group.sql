SELECT unit, count(*), avg(pay) FROM staff GROUP BY unit
