SELECT count(*)::peeking FROM staff
