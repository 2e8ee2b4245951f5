SELECT peeking(pay) FROM staff
