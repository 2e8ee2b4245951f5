SELECT pg_temp.peeking 'x', count(*) FROM patients
