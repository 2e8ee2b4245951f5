SELECT count(*) FROM staff GROUP BY id
