SELECT age FROM hospital.public.patients
