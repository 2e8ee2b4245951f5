SELECT age, kind FROM patients JOIN encounters ON patients.id = patient_id
