SELECT COUNT(*) FROM (SELECT x.* FROM public.patients x
WHERE age > 30) dbvrcnt
