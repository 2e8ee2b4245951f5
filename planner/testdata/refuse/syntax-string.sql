SELECT 'age FROM patients
