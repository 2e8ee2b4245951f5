SELECT p.f FROM stays s JOIN patients p (a, b, c, d, e, f, g) ON s.id = p.a WHERE p.g = 'x'
