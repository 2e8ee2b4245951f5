SELECT public.patients.name FROM public.patients
