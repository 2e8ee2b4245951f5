SELECT p.age FROM patients p JOIN encounters e ON p.id OPERATOR(mine.=) e.patient_id
