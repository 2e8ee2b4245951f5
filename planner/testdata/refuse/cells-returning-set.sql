SELECT generate_series(1, count(*)) FROM staff
