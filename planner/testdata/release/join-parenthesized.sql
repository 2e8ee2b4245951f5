SELECT p.age, z.city FROM (patients p JOIN zip_city z ON p.zip = z.zip) JOIN cities c ON c.city = z.city
