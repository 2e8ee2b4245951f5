SELECT count(*) FROM (SELECT unit FROM staff LIMIT 1) s
