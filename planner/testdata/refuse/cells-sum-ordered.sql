SELECT sum(pay ORDER BY hired) FROM staff
