SELECT * FROM (SELECT age FROM patients INTERSECT SELECT age FROM patients WHERE sex = 'male') i
