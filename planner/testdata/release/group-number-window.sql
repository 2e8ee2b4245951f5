SELECT age, sex, rank() OVER (PARTITION BY sex ORDER BY count(*)) FROM patients GROUP BY age, sex
