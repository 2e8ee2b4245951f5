SELECT e.kind, p.zip, e.fee FROM encounters e JOIN patients p ON e.patient_id = p.id WHERE p.age > 30
