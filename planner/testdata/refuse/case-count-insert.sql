INSERT INTO zip_city SELECT expected FROM tailor.case_count('conditions', ARRAY['1'])
