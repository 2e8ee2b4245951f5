SELECT * FROM (SELECT * FROM patients INTERSECT SELECT p.* FROM patients p WHERE age > 30) i ORDER BY age
