SELECT age FROM patients NATURAL JOIN pg_class
