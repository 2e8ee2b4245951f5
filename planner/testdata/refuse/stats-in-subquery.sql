SELECT (SELECT count(*) FROM pg_stats)
