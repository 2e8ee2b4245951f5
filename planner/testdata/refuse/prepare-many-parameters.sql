PREPARE q AS SELECT $401::int, age FROM patients
