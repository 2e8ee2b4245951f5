SELECT count(*) FILTER (WHERE p.sex = 'male'), count(*) FROM patients p JOIN encounters e ON p.id = e.patient_id
