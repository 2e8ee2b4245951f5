WITH a AS MATERIALIZED (SELECT age, sex FROM patients) SELECT a.age, c.n FROM a, LATERAL (SELECT count(*) AS n FROM a AS x WHERE x.sex = a.sex) c
