WITH u AS (SELECT age, sex FROM patients UNION SELECT age, sex FROM patients WHERE age > 50) SELECT * FROM u
