WITH zip_city AS (SELECT zip, age FROM patients) SELECT age FROM zip_city
