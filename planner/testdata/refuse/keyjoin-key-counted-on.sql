SELECT count(DISTINCT e.patient_id) FROM patients p JOIN encounters e ON p.id = e.patient_id AND e.kind = 'ward'
