SELECT p.age, e.fee FROM encounters e JOIN patients p ON p.id = e.patient_id ORDER BY p.age DESC, e.fee, e.kind LIMIT 100000
