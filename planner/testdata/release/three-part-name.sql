SELECT public.patients.age FROM public.patients WHERE public.patients.zip > '5'
