SELECT p.age, x.double FROM patients p JOIN encounters e ON p.id = e.patient_id, LATERAL (SELECT e.fee * 2 AS double) x
