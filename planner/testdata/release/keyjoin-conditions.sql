SELECT p.age, e.day FROM patients p INNER JOIN encounters e ON e.patient_id = p.id AND (p.age > 40 OR e.kind = 'ward')
