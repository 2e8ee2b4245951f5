UPDATE patients SET age = 1 WHERE sex = 'male'
