SELECT count(*) FROM patients NATURAL JOIN cities
