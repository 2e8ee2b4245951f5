SELECT age, zip, sex, diagnosis FROM patients
