SELECT count(*) FROM staff UNION ALL SELECT count(*) FROM staff
