SELECT city FROM zip_city z WHERE EXISTS (SELECT FROM patients p WHERE p.id = 3)
