SELECT clinic.public.patients.* FROM patients
