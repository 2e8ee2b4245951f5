SELECT count(*) FROM staff WHERE unit LIKE 'i\'
