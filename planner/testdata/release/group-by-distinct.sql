SELECT age, sex, count(*) FROM patients GROUP BY DISTINCT ROLLUP (age), ROLLUP (sex)
