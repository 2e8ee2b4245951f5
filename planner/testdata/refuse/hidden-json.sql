SELECT json_build_object('n', name) FROM patients
