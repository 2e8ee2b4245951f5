SELECT diagnosis AS name, count(*) FROM patients GROUP BY diagnosis ORDER BY name
