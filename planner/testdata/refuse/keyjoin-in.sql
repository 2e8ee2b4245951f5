SELECT p.age FROM patients p WHERE p.id IN (SELECT patient_id FROM encounters)
