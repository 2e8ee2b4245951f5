SELECT clinic.public.patients.age FROM patients
