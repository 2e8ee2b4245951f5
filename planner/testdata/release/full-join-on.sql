SELECT p.zip, z.zip FROM patients p FULL JOIN zip_city z ON p.zip = z.zip
