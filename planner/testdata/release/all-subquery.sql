SELECT age FROM patients WHERE age >= ALL (SELECT age FROM patients)
