SELECT CAST(diagnosis AS pg_temp.peeking) FROM patients
