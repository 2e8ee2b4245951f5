SELECT * FROM tailor.case_count('patients', ARRAY['1'])
