SELECT * FROM tailor.case_count('public.conditions', ARRAY['250.00', '401.9'])
