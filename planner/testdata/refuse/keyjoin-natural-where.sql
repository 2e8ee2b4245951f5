SELECT p.age FROM patients p NATURAL JOIN encounters e WHERE p.id = e.patient_id
