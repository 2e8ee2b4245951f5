SELECT zip, count(*) FROM patients JOIN zip_city USING (zip) GROUP BY ROLLUP (zip)
