SELECT count(*) FROM patients p JOIN drugs d ON d.patient_id = p.id JOIN encounters e ON e.patient_id = p.id
