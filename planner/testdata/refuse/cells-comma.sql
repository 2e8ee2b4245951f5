SELECT count(*) FROM staff, zip_city
