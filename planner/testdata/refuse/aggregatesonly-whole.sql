SELECT staff FROM staff;
