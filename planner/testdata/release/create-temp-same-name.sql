CREATE TEMP TABLE patients AS SELECT age, zip FROM public.patients
