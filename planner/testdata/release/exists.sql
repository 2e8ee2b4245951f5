SELECT city FROM zip_city z WHERE EXISTS (SELECT FROM patients p WHERE p.zip = z.zip AND p.age > 60)
