SELECT count(*) FROM old_patients
