SELECT * FROM public.patients LIMIT 0
