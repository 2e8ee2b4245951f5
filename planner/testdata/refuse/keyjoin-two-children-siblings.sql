SELECT e.kind, s.ward FROM encounters e JOIN stays s ON s.id = e.patient_id
