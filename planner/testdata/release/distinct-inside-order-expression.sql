SELECT d.age FROM (SELECT DISTINCT age, age + 1 FROM patients ORDER BY age + 1 LIMIT 4) d
