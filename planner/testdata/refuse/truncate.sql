TRUNCATE patients
