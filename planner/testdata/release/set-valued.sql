SELECT code, count(DISTINCT patient_id) FROM conditions GROUP BY code
