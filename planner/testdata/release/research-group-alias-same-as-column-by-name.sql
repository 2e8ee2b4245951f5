SELECT floor(age / 10) * 10 AS age, count(*) FROM patients GROUP BY age
