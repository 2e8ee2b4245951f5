SELECT mine.sum(pay) FROM staff
