SELECT p.age FROM patients p LEFT JOIN (encounters e JOIN zip_city c ON true) ON p.id = e.patient_id
