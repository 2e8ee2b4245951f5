SELECT p.sex, e.kind, count(*) FROM patients p JOIN encounters e ON p.id = e.patient_id GROUP BY ROLLUP (p.sex, e.kind)
