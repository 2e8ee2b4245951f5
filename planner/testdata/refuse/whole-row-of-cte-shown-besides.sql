WITH q AS (SELECT age, sex FROM patients) SELECT to_jsonb(a), b.age FROM q a, (SELECT * FROM q) b
