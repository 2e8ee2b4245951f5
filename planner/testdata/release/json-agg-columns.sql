SELECT json_agg(json_build_object('d', diagnosis, 'c', cost)) FROM patients
