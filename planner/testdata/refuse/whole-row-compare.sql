SELECT count(*) FROM patients p, patients q WHERE p = q
