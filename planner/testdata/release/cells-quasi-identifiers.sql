SELECT unit, sum(pay) FROM staff WHERE age > 30 AND sex IN ('F') GROUP BY unit
