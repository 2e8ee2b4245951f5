SELECT zip, age, n FROM zip_city NATURAL JOIN ((WITH x AS (SELECT zip, max(age) AS age, count(*) AS n FROM patients GROUP BY zip) SELECT * FROM x)) y
