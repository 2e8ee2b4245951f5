SELECT unit, count(*) FROM staff GROUP BY unit ORDER BY (SELECT 1)
