SELECT count(DISTINCT p.id) AS people, count(*), max(e.fee) FROM encounters e JOIN patients p ON (p.id = e.patient_id)
