SELECT count(*) FROM staff WHERE unit::int = 3
