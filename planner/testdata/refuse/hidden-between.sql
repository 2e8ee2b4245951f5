SELECT count(*) FROM patients WHERE id BETWEEN 1 AND 10
