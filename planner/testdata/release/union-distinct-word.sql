SELECT * FROM (SELECT age FROM patients UNION DISTINCT SELECT age FROM patients WHERE sex = 'male') u
