SELECT age, rank() OVER (PARTITION BY sex ORDER BY age), sum(cost) OVER w FROM patients WINDOW w AS (ORDER BY zip)
