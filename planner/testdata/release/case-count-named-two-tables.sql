SELECT 1 FROM patients; SELECT * FROM tailor.case_count('conditions', '{}')
