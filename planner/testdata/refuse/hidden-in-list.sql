SELECT count(*) FROM patients WHERE 5 IN (age, id)
