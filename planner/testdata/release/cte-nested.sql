WITH a AS (SELECT age, zip FROM patients), b AS (SELECT age FROM a WHERE zip > '5') SELECT * FROM b
