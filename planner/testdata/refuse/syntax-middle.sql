SELECT age FROM patients WHERE GROUP BY sex
