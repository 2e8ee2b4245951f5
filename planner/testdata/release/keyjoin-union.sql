SELECT p.sex, e.kind FROM patients p JOIN encounters e ON p.id = e.patient_id WHERE e.kind = 'ward' UNION ALL SELECT sex, 'all' FROM patients
