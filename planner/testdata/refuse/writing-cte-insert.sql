WITH w AS (INSERT INTO names SELECT diagnosis, 1 FROM patients RETURNING *) SELECT * FROM w
