SELECT c.city, e.kind, p.age FROM zip_city c LEFT JOIN (patients p JOIN encounters e ON p.id = e.patient_id) ON c.zip = p.zip
