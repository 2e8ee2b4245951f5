SELECT y FROM (SELECT age, sex FROM patients) q (y, s)
