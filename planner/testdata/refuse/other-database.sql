SELECT age FROM clinic.public.patients
