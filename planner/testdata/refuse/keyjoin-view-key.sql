SELECT v.years, e.kind FROM elderly v JOIN encounters e ON e.patient_id = v.id
