SELECT count(*) FROM staff WHERE upper(unit) = 'ICU'
