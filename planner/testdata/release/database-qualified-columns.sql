SELECT hospital.public.patients.age, hospital.public.patients.* FROM hospital.public.patients
