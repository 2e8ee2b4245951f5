SELECT age, sex, count(*) FROM patients GROUP BY GROUPING SETS ((age), (sex))
