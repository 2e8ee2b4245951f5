SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'v') AND (c.relname) LIKE 'pati%' AND pg_catalog.pg_table_is_visible(c.oid) UNION ALL SELECT NULL::pg_catalog.text LIMIT 1000
