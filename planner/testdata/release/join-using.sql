SELECT p.zip, zip, city FROM patients p JOIN zip_city z USING (zip)
