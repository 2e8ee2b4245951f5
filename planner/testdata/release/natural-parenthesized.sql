SELECT age, city FROM patients NATURAL JOIN (zip_city NATURAL JOIN cities)
