SELECT p.age FROM patients p NATURAL JOIN encounters e
