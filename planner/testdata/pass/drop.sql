DROP TABLE patients
