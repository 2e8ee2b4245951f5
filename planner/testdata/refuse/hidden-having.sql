SELECT count(*) FROM patients HAVING max(name) > 'x'
