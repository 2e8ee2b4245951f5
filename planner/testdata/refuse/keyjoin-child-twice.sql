SELECT e.kind, f.kind FROM patients p JOIN encounters e ON p.id = e.patient_id JOIN encounters f ON p.id = f.patient_id
