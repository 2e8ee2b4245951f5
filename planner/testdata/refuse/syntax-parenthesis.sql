SELECT (age FROM patients
