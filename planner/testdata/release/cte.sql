WITH old AS (SELECT age, zip FROM patients WHERE age > 70) SELECT zip, age FROM old ORDER BY 1
