SELECT p.age FROM encounters e JOIN patients p ON true LEFT JOIN zip_city c ON p.id = e.patient_id
