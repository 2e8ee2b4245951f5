WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT n FROM r) CYCLE n SET c TO pg_temp.d 'x' DEFAULT pg_temp.d 'y' USING q SELECT count(*) FROM patients, r
