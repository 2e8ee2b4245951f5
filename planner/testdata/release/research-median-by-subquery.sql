SELECT avg(cost) FROM (SELECT cost, row_number() OVER (ORDER BY cost) AS r, count(*) OVER () AS n FROM patients) t WHERE r IN ((n + 1) / 2, (n + 2) / 2)
