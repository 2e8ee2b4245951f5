SELECT (SELECT upper FROM tailor.case_count('conditions', ARRAY['1'])), count(*) FROM patients
