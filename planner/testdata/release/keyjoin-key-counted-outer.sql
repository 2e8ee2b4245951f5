SELECT (SELECT count(DISTINCT e.patient_id) FROM encounters e LEFT JOIN patients p ON e.patient_id = p.id), count(DISTINCT e.patient_id) FROM encounters e
