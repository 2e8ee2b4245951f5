SELECT sex FROM staff GROUP BY sex
