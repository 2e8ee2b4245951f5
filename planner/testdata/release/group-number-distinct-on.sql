SELECT DISTINCT ON (patients.age) age, sex, count(*) FROM patients GROUP BY age, sex ORDER BY age, count(*) DESC
