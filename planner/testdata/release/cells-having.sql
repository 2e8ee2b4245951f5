SELECT sex, sum(pay) FROM public.staff WHERE public.staff.hired >= date '2020-01-01' GROUP BY public.staff.sex HAVING sum(pay) > 10 AND count(*) < 100 ORDER BY sum(pay)
