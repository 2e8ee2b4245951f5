SELECT count(*) FROM patients CROSS JOIN zip_city
