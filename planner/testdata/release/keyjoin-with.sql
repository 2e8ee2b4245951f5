WITH j AS (SELECT p.age, e.kind FROM patients p JOIN encounters e ON p.id = e.patient_id WHERE p.age < 60) SELECT kind, min(age) FROM j GROUP BY kind
