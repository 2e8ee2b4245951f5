SELECT count(DISTINCT patient_id) FROM encounters HAVING count(DISTINCT patient_id) > 3
