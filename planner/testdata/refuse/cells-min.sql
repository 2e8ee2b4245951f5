SELECT min(pay) FROM staff
