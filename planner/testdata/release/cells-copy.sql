COPY (SELECT unit, count(*) FROM staff GROUP BY unit) TO STDOUT
