SELECT e.kind, s.ward FROM patients p JOIN encounters e ON p.id = e.patient_id JOIN stays s ON s.id = p.id
