SELECT 1; SELECT age FROM patients; SELECT count(*) FROM diagnoses
