SELECT j.age FROM (patients JOIN zip_city USING (zip)) AS j
