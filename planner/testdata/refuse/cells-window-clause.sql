SELECT unit, count(*) FROM staff GROUP BY unit WINDOW w AS (ORDER BY unit)
