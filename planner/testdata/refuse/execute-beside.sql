SELECT count(*) FROM patients; EXECUTE q (1)
