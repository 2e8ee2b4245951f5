SELECT count(*) FROM patients WHERE (age, sex) IN (SELECT age, sex FROM patients WHERE cost > 100)
