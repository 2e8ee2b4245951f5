SELECT * FROM old_patients
