SELECT * FROM patients NATURAL JOIN (SELECT DISTINCT city, zip FROM zip_city WHERE city > 'a') AS c NATURAL LEFT JOIN (SELECT 'x'::text AS x) d WHERE age > 1
