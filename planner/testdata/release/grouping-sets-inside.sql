SELECT * FROM (SELECT age, sex, count(*) AS n FROM patients GROUP BY GROUPING SETS ((age), (sex), ())) g
