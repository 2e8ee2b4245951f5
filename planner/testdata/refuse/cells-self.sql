SELECT count(*) FROM staff a, staff b
