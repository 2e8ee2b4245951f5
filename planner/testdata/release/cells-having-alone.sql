SELECT count(*) FROM staff HAVING count(pay) > 3
