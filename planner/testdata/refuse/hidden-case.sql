SELECT CASE WHEN name = 'x' THEN 1 END FROM patients
