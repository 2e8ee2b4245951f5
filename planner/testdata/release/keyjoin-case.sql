SELECT CASE WHEN p.age >= 60 THEN 'old' ELSE 'young' END, count(*) FROM patients p JOIN encounters e ON p.id = e.patient_id GROUP BY 1
