SELECT j.age, e.kind FROM (SELECT id, age FROM patients) j JOIN encounters e ON e.patient_id = j.id
