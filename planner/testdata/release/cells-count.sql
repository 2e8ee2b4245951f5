SELECT count(*) FROM staff
