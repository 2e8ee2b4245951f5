SELECT * FROM patients AS p (a, b, c, d, e, f, g)
