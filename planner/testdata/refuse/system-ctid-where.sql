SELECT age FROM patients WHERE ctid = '(0,1)'
