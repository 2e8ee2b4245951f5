SELECT * FROM patients p, generate_series(1, p.id)
