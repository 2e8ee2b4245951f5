SELECT * FROM patients JOIN pg_type USING (age)
