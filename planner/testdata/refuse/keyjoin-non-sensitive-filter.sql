SELECT e.kind FROM patients p JOIN encounters e ON p.id = e.patient_id WHERE p.cost > 10
