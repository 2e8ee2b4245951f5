SELECT age FROM patients WHERE sex = 'male' UNION ALL SELECT age FROM patients ORDER BY age
