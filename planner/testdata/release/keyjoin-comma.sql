SELECT p.sex, e.kind FROM patients p, encounters e WHERE e.patient_id = p.id AND e.fee > 20
