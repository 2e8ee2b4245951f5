SELECT * FROM tailor.case_count('public.' || 'conditions', ARRAY['1'])
