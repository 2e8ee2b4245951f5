SELECT OPERATOR(public.@@) age FROM patients
