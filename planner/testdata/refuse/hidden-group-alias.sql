SELECT diagnosis AS name FROM patients GROUP BY name
