CREATE STATISTICS s ON age, zip FROM patients
