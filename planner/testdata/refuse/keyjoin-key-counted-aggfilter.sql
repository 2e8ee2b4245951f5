SELECT count(DISTINCT patient_id) FILTER (WHERE fee > 3) FROM encounters
