SELECT count(*) FROM staff WHERE id = 3
