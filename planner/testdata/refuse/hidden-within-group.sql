SELECT mode() WITHIN GROUP (ORDER BY ssn) FROM patients
