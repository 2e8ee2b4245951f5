SELECT sum(1) FROM staff
