SELECT rank() OVER (ORDER BY count(*)), count(*) FROM staff GROUP BY unit
