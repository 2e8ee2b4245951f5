SELECT p.age, z.city FROM patients p RIGHT OUTER JOIN zip_city z ON z.zip = p.zip
