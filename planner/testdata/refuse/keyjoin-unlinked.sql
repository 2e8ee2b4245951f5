SELECT p.age, d.code FROM patients p JOIN diagnoses d ON p.id = d.patient_id
