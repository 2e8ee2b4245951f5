SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relkind IN ('v', '') AND c.relname ~ '^(elderly)$'
