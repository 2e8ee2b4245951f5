PREPARE p AS SELECT name FROM patients
