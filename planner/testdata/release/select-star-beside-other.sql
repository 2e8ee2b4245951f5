SELECT * FROM patients p JOIN zip_city z ON z.zip = p.zip
