SELECT oid, stxrelid::pg_catalog.regclass FROM pg_catalog.pg_class c WHERE 'patients' = c.relname
