SELECT json_agg(patients) FROM patients
