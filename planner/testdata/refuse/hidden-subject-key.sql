SELECT patient_id FROM diagnoses
