SELECT p.age, (SELECT count(*) FROM encounters e WHERE e.patient_id = p.id) FROM patients p
