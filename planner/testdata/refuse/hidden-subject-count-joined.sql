SELECT count(DISTINCT id) FROM patients JOIN zip_city USING (zip)
