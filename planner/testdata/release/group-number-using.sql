SELECT zip, age, count(*) FROM patients JOIN zip_city USING (zip) GROUP BY zip, age
