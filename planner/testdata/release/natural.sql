SELECT age FROM patients NATURAL JOIN zip_city
