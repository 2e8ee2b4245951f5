SELECT ROW(patients.*) FROM patients
