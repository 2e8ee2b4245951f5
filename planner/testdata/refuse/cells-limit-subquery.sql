SELECT count(*) FROM staff LIMIT (SELECT 1)
