EXPLAIN SELECT count(*) FROM staff
