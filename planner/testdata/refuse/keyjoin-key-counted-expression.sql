SELECT count(DISTINCT patient_id) + 1 FROM encounters
