SELECT p IS NULL FROM patients p
