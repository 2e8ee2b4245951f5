SELECT age / 10, count(*) FROM patients GROUP BY age / 10
