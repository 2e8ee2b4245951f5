WITH old (a, z) AS (SELECT age, zip FROM patients) SELECT * FROM old
