SELECT * FROM cities c, patients p JOIN zip_city z USING (zip)
