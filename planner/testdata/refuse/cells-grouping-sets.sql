SELECT unit, count(*) FROM staff GROUP BY GROUPING SETS ((unit), ())
