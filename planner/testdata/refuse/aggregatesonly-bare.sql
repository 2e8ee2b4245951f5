SELECT pay FROM staff;
