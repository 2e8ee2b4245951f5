SELECT ssn IS NULL FROM patients
