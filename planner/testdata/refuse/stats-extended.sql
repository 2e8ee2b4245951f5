SELECT * FROM pg_stats_ext
