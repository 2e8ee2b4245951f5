WITH a AS (SELECT ssn FROM patients) SELECT 1
