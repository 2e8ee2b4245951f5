SELECT age FROM patients WHERE sex = 'male
