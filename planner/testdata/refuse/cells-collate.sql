SELECT unit COLLATE "C", count(*) FROM staff GROUP BY 1
