SELECT code, count(DISTINCT patient_id) FROM drugs GROUP BY code
