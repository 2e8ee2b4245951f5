SELECT count(DISTINCT pay) FROM staff;
