SELECT age, count(*) FROM patients GROUP BY 1 ORDER BY 1
