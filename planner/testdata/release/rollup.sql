SELECT zip, sex, avg(cost) FROM patients GROUP BY ROLLUP (zip, sex)
