SELECT count(*) FROM staff WHERE unit LIKE $1
