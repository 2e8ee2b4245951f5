SELECT mode() WITHIN GROUP (ORDER BY pay), count(*) FROM staff
