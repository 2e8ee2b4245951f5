SELECT age, city FROM (SELECT age, zip FROM patients) p NATURAL INNER JOIN zip_city
