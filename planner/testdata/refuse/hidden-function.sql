SELECT length(name) FROM patients
