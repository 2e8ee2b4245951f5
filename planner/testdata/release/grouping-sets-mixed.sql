SELECT age, sex, count(*) FROM patients GROUP BY age, GROUPING SETS ((sex), ())
