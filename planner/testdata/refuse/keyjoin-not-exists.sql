SELECT p.age FROM patients p WHERE NOT EXISTS (SELECT FROM encounters e WHERE p.id = e.patient_id)
