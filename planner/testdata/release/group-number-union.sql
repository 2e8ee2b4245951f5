SELECT age, count(*) FROM patients GROUP BY age UNION SELECT age, 1 FROM patients GROUP BY 1 ORDER BY age
