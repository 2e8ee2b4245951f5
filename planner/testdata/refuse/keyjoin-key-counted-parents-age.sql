SELECT count(DISTINCT p.id) FROM patients p JOIN encounters e ON p.id = e.patient_id WHERE e.kind = 'urgent' AND p.age > 60
