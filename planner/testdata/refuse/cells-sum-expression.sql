SELECT sum(pay * 2) FROM staff
