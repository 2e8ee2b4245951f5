WITH RECURSIVE a AS (SELECT zip, count(*) AS c FROM patients GROUP BY zip), n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT a.zip, n.i FROM a, n
