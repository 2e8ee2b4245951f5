SELECT count(*) FROM patients p JOIN wards w USING (patient_id)
