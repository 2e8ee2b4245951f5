SELECT count(*) FROM public.lab
