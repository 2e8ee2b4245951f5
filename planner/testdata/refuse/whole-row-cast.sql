SELECT patients::text FROM patients
