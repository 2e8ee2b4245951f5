SELECT p.age, c.code FROM patients p JOIN conditions c ON c.patient_id = p.id
