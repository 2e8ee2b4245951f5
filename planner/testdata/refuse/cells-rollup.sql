SELECT unit, count(*) FROM staff GROUP BY ROLLUP (unit)
