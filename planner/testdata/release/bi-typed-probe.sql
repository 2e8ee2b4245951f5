SELECT * FROM (SELECT age, zip FROM public.patients) AS probe WHERE 1 = 0
