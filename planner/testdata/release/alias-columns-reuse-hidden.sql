SELECT name FROM patients p (name)
