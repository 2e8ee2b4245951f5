SELECT e.kind, count(*) FROM encounters e WHERE EXISTS (SELECT FROM patients p WHERE p.id = e.patient_id AND p.age > 60) GROUP BY e.kind
