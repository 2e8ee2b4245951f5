SELECT string_agg(diagnosis, ',' ORDER BY name) FROM patients
