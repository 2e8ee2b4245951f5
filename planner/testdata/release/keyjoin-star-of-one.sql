SELECT p.*, e.fee FROM patients p JOIN encounters e ON p.id = e.patient_id
