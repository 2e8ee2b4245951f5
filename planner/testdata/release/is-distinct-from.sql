SELECT age, sex IS DISTINCT FROM 'male' FROM patients
