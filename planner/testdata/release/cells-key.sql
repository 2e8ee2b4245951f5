SELECT count(DISTINCT id), count(DISTINCT id) FILTER (WHERE pay IS NULL), count(DISTINCT unit) FROM staff
