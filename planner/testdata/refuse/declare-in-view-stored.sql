SELECT * FROM stored_patients
