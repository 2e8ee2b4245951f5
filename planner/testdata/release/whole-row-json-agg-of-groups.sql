SELECT json_agg(t ORDER BY t.zip) FROM (SELECT zip, count(*) AS n FROM patients GROUP BY zip) t
