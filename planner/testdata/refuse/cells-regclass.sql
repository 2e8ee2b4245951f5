SELECT count(*)::regclass FROM staff
