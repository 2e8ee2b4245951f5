SELECT years, e.diagnosis FROM public.elderly AS e WHERE years > 70 ORDER BY years
