SELECT count(*) FROM staff FOR UPDATE
