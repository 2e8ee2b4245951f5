SELECT name FROM patients
