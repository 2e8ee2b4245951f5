SELECT p.age, e.kind FROM patients p FULL JOIN encounters e ON p.id = e.patient_id
