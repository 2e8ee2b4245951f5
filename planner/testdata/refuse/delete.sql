DELETE FROM patients WHERE age = 3
