SELECT count(*) FROM patients WHERE diagnosis = ANY ('{a}'::pg_temp.peeking[])
