SELECT id::text FROM patients
