SELECT age IS NULL, zip IS NOT NULL, (age > 3) IS UNKNOWN, (age > 3) IS NOT TRUE FROM patients
