SELECT public.patients.age, encounters.kind FROM public.patients, public.encounters WHERE public.patients.id = public.encounters.patient_id
