SELECT *, count(*) FROM staff GROUP BY unit
