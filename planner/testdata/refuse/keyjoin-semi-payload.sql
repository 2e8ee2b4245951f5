SELECT fee FROM encounters WHERE patient_id IN (SELECT p.id FROM patients p WHERE diagnosis = 'asthma')
