SELECT p FROM patients p
