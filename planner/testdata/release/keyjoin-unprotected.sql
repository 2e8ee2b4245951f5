SELECT c.city, count(*) FROM patients p JOIN encounters e ON p.id = e.patient_id JOIN zip_city c ON c.zip = p.zip GROUP BY c.city
