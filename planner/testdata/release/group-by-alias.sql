SELECT age AS years, count(*) FROM patients GROUP BY years HAVING count(*) > 3
