SELECT * FROM (SELECT age / 10 AS decade, count(*) FROM patients GROUP BY age / 10) a
