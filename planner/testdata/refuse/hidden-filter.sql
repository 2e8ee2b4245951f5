SELECT count(*) FILTER (WHERE name LIKE 'A%') FROM patients
