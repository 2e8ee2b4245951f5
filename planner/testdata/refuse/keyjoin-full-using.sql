SELECT p.age, s.ward FROM stays s FULL JOIN patients p USING (id)
