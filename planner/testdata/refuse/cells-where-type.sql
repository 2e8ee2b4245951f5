SELECT count(*) FROM staff WHERE unit = 'x'::peeking
