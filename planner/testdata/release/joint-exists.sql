SELECT id, age FROM patients WHERE NOT EXISTS (SELECT FROM research.drugs d WHERE d.patient_id = patients.id AND code IN ('A01', 'B02'))
