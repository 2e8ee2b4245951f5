WITH s AS (SELECT age, avg(pay) AS p FROM staff GROUP BY age) SELECT age, p, rank() OVER (ORDER BY p) FROM s;
