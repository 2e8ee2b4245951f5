SELECT city, (SELECT avg(age) FROM patients p WHERE p.zip = z.zip) FROM zip_city z
