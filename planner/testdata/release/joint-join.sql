SELECT p.age, d.code, count(*) FROM patients p JOIN drugs d ON d.patient_id = p.id WHERE p.sex = 'male' GROUP BY 1, 2
