SELECT count(DISTINCT d.patient_id) FROM diagnoses d
