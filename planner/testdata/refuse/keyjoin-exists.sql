SELECT p.age FROM patients p WHERE EXISTS (SELECT FROM encounters e WHERE e.patient_id = p.id)
