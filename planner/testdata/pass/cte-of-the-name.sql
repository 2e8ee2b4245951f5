WITH patients AS (SELECT 1 AS age) SELECT age FROM patients
