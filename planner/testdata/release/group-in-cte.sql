WITH g AS (SELECT zip, avg(cost) AS mean FROM patients GROUP BY zip) SELECT zip, mean, city FROM g JOIN zip_city USING (zip)
