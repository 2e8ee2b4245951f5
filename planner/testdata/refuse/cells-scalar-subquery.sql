SELECT (SELECT count(*) FROM staff)
