SELECT (age).pg_terminate_backend FROM patients
