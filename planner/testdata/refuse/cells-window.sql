SELECT unit, sum(count(*)) OVER () FROM staff GROUP BY unit
