SELECT fee FROM encounters e WHERE patient_id IN (SELECT p.id FROM patients p GROUP BY p.id, age)
