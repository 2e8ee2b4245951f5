SELECT s.age, r.ward FROM rota r JOIN staff s USING (id)
