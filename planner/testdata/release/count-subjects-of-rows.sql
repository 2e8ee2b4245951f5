SELECT count(DISTINCT patient_id) FROM diagnoses
