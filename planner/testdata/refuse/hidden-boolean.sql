SELECT count(*) FROM patients WHERE age > 3 OR name > 'M'
