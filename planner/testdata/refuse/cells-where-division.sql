SELECT count(*) FROM staff WHERE 1 / pay > 0
