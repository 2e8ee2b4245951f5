SELECT unit, count(*) FROM staff GROUP BY unit ORDER BY count(*) USING OPERATOR(mine.<)
