SELECT count(*) FROM patients p WHERE EXISTS (SELECT FROM encounters e WHERE e.patient_id = p.id AND e.kind = 'urgent' AND p.age > 60)
