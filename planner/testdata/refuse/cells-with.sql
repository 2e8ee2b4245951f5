WITH s AS (SELECT unit FROM staff) SELECT count(*) FROM s
