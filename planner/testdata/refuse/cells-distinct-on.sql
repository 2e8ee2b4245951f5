SELECT DISTINCT ON (unit) unit, count(*) FROM staff GROUP BY unit
