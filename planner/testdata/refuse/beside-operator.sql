SELECT count(*) FROM patients; SELECT 1 OPERATOR(public.=) 1
