SELECT unit, avg(pay) FROM staff GROUP BY unit;
