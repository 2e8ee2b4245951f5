SELECT zip, c.city, e.kind FROM encounters e JOIN patients p ON p.id = e.patient_id JOIN zip_city c USING (zip)
