SELECT kind, count(DISTINCT patient_id) FROM encounters GROUP BY kind
