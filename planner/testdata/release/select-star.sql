SELECT * FROM patients
