SELECT * FROM patients p JOIN stays s USING (id)
