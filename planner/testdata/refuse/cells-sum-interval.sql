SELECT unit, sum(leave) FROM staff GROUP BY unit
