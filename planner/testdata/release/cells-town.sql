SELECT count(*) FROM staff WHERE town = 'Oslo'
