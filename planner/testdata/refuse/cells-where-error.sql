SELECT count(*) FROM staff WHERE unit = 'icu' AND pay > 1/0
