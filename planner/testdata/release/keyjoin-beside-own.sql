SELECT e.kind, count(*), (SELECT count(*) FROM patients) FROM patients p JOIN encounters e ON p.id = e.patient_id GROUP BY e.kind
