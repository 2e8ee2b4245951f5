SELECT age, count(*) AS n FROM staff s WHERE s.sex = 'F' AND pay > 100 GROUP BY 1 ORDER BY 2 DESC, age LIMIT 10
