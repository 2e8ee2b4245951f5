SELECT ((((((age)))))) FROM patients
