SELECT q.age FROM (WITH a AS (SELECT age FROM patients) SELECT age FROM a) q
