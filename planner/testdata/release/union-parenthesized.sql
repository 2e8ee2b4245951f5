SELECT * FROM ((SELECT age FROM patients ORDER BY age LIMIT 3) UNION (SELECT age FROM patients)) u
