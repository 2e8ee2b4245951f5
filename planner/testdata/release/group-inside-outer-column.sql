SELECT q.* FROM patients p, LATERAL (SELECT p.age, count(*) AS n FROM zip_city z GROUP BY p.age) q
