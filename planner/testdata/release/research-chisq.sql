WITH o AS (SELECT sex, diagnosis, count(*)::float AS n FROM patients GROUP BY sex, diagnosis), r AS (SELECT sex, sum(n) AS n FROM o GROUP BY sex), c AS (SELECT diagnosis, sum(n) AS n FROM o GROUP BY diagnosis), t AS (SELECT sum(n) AS n FROM o)
SELECT round(sum((o.n - r.n * c.n / t.n) ^ 2 / (r.n * c.n / t.n))::numeric, 6) AS chi2 FROM o JOIN r USING (sex) JOIN c USING (diagnosis) CROSS JOIN t
