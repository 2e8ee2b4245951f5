SELECT to_jsonb(patients) FROM patients
