SELECT sum(pay * 12) FROM staff;
