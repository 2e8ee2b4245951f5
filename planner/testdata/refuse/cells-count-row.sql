SELECT count(staff) FROM staff
