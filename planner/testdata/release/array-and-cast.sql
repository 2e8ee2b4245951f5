SELECT (ARRAY[1,2])[1], (age > 3 OR sex = 'x')::int, zip::text FROM patients
