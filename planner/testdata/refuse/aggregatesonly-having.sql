SELECT sex FROM staff GROUP BY sex HAVING max(pay) > 3;
