SELECT age FROM patients ORDER BY ssn
