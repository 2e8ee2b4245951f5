SELECT count(*), count(DISTINCT patient_id) FROM patients, encounters WHERE patients.id = patient_id
