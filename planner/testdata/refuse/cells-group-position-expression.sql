SELECT left(unit, 1), count(*) FROM staff GROUP BY 1
