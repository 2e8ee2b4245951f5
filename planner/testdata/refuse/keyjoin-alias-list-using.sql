SELECT p.f FROM stays s JOIN patients p (a, b, c, d, e, f, g) USING (id) WHERE p.g = 'x'
