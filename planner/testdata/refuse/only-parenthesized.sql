SELECT age FROM ONLY (patients)
