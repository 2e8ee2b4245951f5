SELECT age - (SELECT avg(age) FROM patients) FROM patients
