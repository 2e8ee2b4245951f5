SELECT (tailor.case_count(codes => ARRAY['1'], relation => 'research.conditions')).upper
