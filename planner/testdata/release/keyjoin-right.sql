SELECT e.kind, p.sex FROM patients p RIGHT OUTER JOIN encounters e ON (p.id = e.patient_id)
