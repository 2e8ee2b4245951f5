SELECT pg_terminate_backend(cost::int) FROM patients LIMIT 1
