SELECT public.elderly.years FROM public.elderly
