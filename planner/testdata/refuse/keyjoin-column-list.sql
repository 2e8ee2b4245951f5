SELECT p.a FROM patients p (a) JOIN encounters e ON p.id = e.patient_id
