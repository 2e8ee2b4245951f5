SELECT * FROM (SELECT tailor.label(age) AS l, sex FROM public.patients WHERE public.patients.age > 3) q
