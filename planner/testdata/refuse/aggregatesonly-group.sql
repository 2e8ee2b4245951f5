SELECT count(*) FROM staff GROUP BY pay;
