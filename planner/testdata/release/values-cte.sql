WITH bands (lo, hi) AS (VALUES (0, 17), (18, 64)) SELECT lo, count(*) FROM bands JOIN patients ON age BETWEEN lo AND hi GROUP BY lo
