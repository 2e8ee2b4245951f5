SELECT d.n FROM (SELECT DISTINCT age, count(*) AS n FROM patients GROUP BY age) d
