SELECT code, count(DISTINCT patient_id) FROM diagnoses GROUP BY code
