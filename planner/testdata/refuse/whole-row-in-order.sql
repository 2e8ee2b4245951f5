SELECT age FROM patients ORDER BY patients
