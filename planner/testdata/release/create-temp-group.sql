CREATE TEMP TABLE mine AS SELECT age, count(*) AS n FROM patients GROUP BY age
