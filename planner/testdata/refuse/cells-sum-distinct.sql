SELECT sum(DISTINCT pay) FROM staff
