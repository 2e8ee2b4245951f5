SELECT count(*) FROM patients WHERE name = 'x'
