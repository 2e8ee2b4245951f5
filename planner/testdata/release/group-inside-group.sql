SELECT n, count(*) FROM (SELECT age, count(*) AS n FROM patients GROUP BY age) a GROUP BY n
