SELECT p.age, e.kind FROM patients p LEFT JOIN encounters e ON p.id = e.patient_id
