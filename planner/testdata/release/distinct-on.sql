SELECT DISTINCT ON (zip) zip, age FROM patients ORDER BY zip, age DESC
