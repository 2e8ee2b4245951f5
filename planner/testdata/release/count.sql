SELECT count(*) FROM patients
