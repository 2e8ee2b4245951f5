SELECT count(*) FROM patients NATURAL JOIN patients q
