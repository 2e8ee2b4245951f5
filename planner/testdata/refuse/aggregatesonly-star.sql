SELECT * FROM staff;
