SELECT age, result FROM lab JOIN patients USING (age)
