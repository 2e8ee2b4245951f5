SELECT p.age, x.kind FROM patients p, LATERAL (SELECT e.kind FROM encounters e WHERE e.patient_id = p.id) x
