SELECT count(*) FROM staff WHERE nick = 'bo'
