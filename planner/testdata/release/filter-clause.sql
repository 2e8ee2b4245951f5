SELECT count(*) FILTER (WHERE age > 60), count(*) FROM patients
