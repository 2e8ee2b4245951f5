SELECT p.age FROM patients p JOIN encounters e ON p.id <= e.patient_id
