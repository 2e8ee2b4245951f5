SELECT j.age, max(j.fee) FROM (SELECT p.age, e.fee FROM patients p JOIN encounters e ON p.id = e.patient_id) j GROUP BY j.age
