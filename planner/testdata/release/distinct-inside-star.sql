SELECT * FROM (SELECT DISTINCT age, sex FROM patients) d
