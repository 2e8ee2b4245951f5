SELECT count(*) FILTER (WHERE pay / 2 > 3) FROM staff
