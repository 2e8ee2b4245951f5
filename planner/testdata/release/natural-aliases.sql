SELECT p.age, z.city FROM patients AS p NATURAL JOIN zip_city AS z ORDER BY 1
