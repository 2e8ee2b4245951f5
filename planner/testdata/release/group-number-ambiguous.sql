SELECT age, count(*) FROM patients p JOIN patients q ON p.diagnosis = q.diagnosis GROUP BY age
