SELECT diagnosis AS name FROM patients ORDER BY lower(name)
