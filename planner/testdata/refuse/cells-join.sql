SELECT count(*) FROM staff JOIN zip_city c ON c.city = unit
