WITH d (z, s) AS (SELECT DISTINCT zip, sex FROM patients) SELECT s, z FROM d ORDER BY z
