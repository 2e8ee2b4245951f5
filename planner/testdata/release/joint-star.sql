SELECT * FROM patients p LEFT JOIN drugs d ON d.patient_id = p.id
