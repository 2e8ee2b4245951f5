SELECT count(*) FROM patients p JOIN encounters e ON p.id = e.patient_id, patients q JOIN encounters f ON q.id = f.patient_id WHERE p.age = q.age AND e.day = f.day
