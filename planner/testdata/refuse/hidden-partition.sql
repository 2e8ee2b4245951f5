SELECT count(*) OVER (PARTITION BY ssn) FROM patients
