SELECT max(ssn) FROM patients
