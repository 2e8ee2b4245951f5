SELECT most_common_vals FROM pg_stats
