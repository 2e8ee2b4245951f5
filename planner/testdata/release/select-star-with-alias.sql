SELECT p.* FROM public.patients AS p
