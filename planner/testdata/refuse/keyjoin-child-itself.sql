SELECT e.kind, f.kind FROM encounters e JOIN encounters f ON e.patient_id = f.patient_id
