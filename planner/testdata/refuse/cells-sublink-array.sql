SELECT count(*), ARRAY(SELECT 1) FROM staff
