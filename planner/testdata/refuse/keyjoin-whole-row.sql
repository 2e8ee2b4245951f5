SELECT e FROM patients p JOIN encounters e ON p.id = e.patient_id
