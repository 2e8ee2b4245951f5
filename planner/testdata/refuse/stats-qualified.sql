SELECT stavalues1 FROM pg_catalog.pg_statistic
