SELECT count(*) FROM staff WHERE unit SIMILAR TO 'i%'
