SELECT tailor.label(age + 1) FROM patients
