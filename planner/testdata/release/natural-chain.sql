SELECT age, city, population FROM patients NATURAL JOIN zip_city NATURAL JOIN cities
