SELECT p.sex, e.kind, count(*), avg(e.fee) FROM patients p JOIN encounters e ON p.id = e.patient_id GROUP BY p.sex, e.kind
