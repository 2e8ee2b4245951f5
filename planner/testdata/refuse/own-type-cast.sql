SELECT diagnosis::public.peeking FROM patients
