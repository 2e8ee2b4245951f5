SELECT diagnosis, COUNT(*) FROM (SELECT * FROM patients p) t GROUP BY diagnosis ORDER BY COUNT(*) DESC, diagnosis
