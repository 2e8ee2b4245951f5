SELECT e.tailor_label_row FROM patients p JOIN encounters e ON p.id = e.patient_id
