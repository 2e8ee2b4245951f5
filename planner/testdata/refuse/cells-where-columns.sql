SELECT count(*) FROM staff WHERE unit = sex
