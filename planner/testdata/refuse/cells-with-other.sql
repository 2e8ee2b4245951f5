WITH s AS (SELECT 1) SELECT count(*) FROM staff
