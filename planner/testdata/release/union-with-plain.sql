SELECT age FROM patients UNION SELECT n FROM names
