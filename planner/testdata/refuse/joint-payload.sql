SELECT p.diagnosis FROM patients p JOIN drugs d ON d.patient_id = p.id
