WITH d AS (DELETE FROM names RETURNING n) SELECT age FROM patients, d
