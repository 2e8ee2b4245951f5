SELECT fee FROM encounters e WHERE EXISTS (SELECT FROM patients p WHERE p.id = e.patient_id OR p.age > 60)
