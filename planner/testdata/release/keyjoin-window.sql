SELECT p.sex, rank() OVER (PARTITION BY p.sex ORDER BY e.fee), e.fee FROM patients p JOIN encounters e ON p.id = e.patient_id
