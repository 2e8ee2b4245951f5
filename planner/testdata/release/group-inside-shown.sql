SELECT a.age, a.n FROM (SELECT age, count(*) AS n FROM patients GROUP BY age) a WHERE n > 3
