SELECT public.patients.age, sex FROM patients GROUP BY public.patients.age, patients.sex
