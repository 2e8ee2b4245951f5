SELECT count(*) FROM patients JOIN names USING (name)
