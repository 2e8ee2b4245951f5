SELECT count(*) FROM staff WHERE unit = 'icu' AND town NOT LIKE 'O%'
