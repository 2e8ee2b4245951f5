SELECT 1 FROM encounters ORDER BY count(DISTINCT patient_id)
