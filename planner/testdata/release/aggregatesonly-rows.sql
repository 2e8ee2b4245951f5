SELECT age, sex FROM staff LIMIT 5;
