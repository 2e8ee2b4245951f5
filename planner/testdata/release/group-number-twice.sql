SELECT age, age AS again, count(*) FROM patients GROUP BY age, 1, again ORDER BY again, age, patients.age
