SELECT c.oid, c.reltuples FROM pg_catalog.pg_class c WHERE c.relname = 'patients'
