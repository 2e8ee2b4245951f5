SELECT p.age, s.ward FROM patients p LEFT JOIN stays s USING (id)
