SELECT max(hired), count(*) FROM staff
