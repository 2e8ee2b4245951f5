SELECT age, N'a\b' FROM patients
