WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT pg_temp.f(p.age) FROM patients p) SELECT * FROM a
