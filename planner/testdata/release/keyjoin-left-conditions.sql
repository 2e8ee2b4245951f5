SELECT e.kind, p.zip FROM encounters e LEFT JOIN patients p ON p.id = e.patient_id AND p.sex = 'male' AND e.fee > 15
