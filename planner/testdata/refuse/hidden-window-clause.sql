SELECT count(*) OVER w FROM patients WINDOW w AS (ORDER BY name)
