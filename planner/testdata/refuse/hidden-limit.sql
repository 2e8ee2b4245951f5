SELECT age FROM patients p LIMIT (SELECT max(id) FROM patients)
