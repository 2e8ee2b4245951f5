SELECT nspname FROM pg_namespace n WHERE nspname !~ '^information_schema|catalog_history|pg_' AND has_schema_privilege(n.nspname, 'USAGE') AND nspname <> 'patients'
