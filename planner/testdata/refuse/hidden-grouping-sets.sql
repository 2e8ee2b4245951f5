SELECT count(*) FROM patients GROUP BY GROUPING SETS ((name), ())
