SELECT n FROM zip_city, LATERAL (SELECT count(*) AS n FROM staff WHERE unit = city) s
