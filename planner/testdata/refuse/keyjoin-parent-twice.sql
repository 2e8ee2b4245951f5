SELECT p.age FROM encounters e JOIN patients p ON p.id = e.patient_id JOIN patients q ON q.id = e.patient_id
