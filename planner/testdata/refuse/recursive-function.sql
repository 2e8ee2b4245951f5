WITH RECURSIVE r AS (SELECT 1 AS n, cursor_to_xml('zz', 2, true, true, '')::text AS x UNION ALL SELECT n + 1, x FROM r WHERE false) SELECT r.x, q.n FROM r, (SELECT count(*) AS n FROM patients) q
