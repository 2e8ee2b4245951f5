SELECT x.n FROM patients p, LATERAL (SELECT p.name AS n) x
