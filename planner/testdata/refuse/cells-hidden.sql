SELECT count(id) FROM staff
