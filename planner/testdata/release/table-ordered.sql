TABLE public.patients ORDER BY age LIMIT 3
