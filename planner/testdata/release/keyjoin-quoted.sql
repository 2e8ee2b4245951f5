SELECT p."Odd Name", e.kind FROM patients p JOIN encounters e ON p."id" = e."patient_id"
