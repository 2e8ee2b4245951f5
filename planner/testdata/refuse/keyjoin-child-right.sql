SELECT p.age, e.kind FROM encounters e RIGHT JOIN patients p ON p.id = e.patient_id
