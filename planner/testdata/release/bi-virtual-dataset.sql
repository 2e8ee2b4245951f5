SELECT sex AS sex, sum(n) AS total FROM (SELECT age, sex, count(*) AS n FROM patients GROUP BY age, sex) AS virtual_table WHERE age >= 30 GROUP BY sex ORDER BY total DESC LIMIT 1000
