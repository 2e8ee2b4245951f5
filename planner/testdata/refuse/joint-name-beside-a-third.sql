WITH drugs AS (SELECT 1 AS n) SELECT p.age FROM patients p, drugs, (SELECT day FROM encounters) e
