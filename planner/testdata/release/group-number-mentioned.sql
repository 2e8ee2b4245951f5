SELECT age, max(age), count(*) FROM patients GROUP BY age
