SELECT a FROM patients p (a, b, c, d, e, f, g, h)
