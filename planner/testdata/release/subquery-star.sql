SELECT * FROM (SELECT age, cost FROM patients) q
