SELECT c.city, e.kind FROM patients p LEFT JOIN zip_city c ON c.zip = p.zip JOIN encounters e ON p.id = e.patient_id
