PREPARE q (int, text) AS SELECT age, count(*) FROM patients WHERE age > $1 AND sex = $2 GROUP BY age
