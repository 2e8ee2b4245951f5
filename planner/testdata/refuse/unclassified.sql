SELECT count(*) FROM patients WHERE ssn = '1'
