SELECT age FROM patients UNION SELECT id FROM patients
