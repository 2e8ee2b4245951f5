SELECT count(*) FROM staff; SELECT 1
