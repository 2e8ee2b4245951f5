SELECT e.note, p.age FROM encounters e LEFT JOIN patients p ON p.id = e.patient_id
