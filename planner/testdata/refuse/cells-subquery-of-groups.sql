SELECT sum(n) FROM (SELECT count(*) AS n FROM staff GROUP BY unit) s
