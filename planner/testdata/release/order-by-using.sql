SELECT age FROM patients ORDER BY age USING >
