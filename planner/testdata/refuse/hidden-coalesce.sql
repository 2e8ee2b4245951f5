SELECT coalesce(ssn, '') FROM patients
