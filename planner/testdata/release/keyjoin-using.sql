SELECT p.age, s.ward FROM patients p JOIN stays s USING (id)
