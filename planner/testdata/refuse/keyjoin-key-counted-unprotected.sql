SELECT count(DISTINCT patient_id) FROM encounters, names
