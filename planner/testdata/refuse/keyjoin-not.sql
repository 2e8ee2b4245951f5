SELECT p.age FROM patients p JOIN encounters e ON NOT p.id = e.patient_id
