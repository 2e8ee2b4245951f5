SELECT DISTINCT ON (p.sex) p.sex, p.age FROM patients p JOIN encounters e ON p.id = e.patient_id ORDER BY p.sex, p.age
