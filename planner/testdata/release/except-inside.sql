SELECT age, n FROM (SELECT age, '1' AS n FROM patients WHERE age < 50 EXCEPT DISTINCT SELECT age, '1' FROM patients WHERE sex = 'male' ORDER BY 1 DESC LIMIT 6) e
