SELECT DISTINCT ON (name) diagnosis AS name, cost FROM patients ORDER BY name, cost
