SELECT count(DISTINCT id) FROM staff;
