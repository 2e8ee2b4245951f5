SELECT count(*) FROM staff WHERE unit ~ 'i('
