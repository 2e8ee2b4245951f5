SELECT * FROM patients JOIN zip_city USING (zip) JOIN cities USING (city)
