SELECT e.kind FROM encounters e WHERE patient_id NOT IN (SELECT id FROM patients WHERE age < 30)
