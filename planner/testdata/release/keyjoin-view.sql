SELECT age, count(*) FROM seen GROUP BY age
