SELECT max(pay) FROM staff;
