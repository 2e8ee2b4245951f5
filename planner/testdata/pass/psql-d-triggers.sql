SELECT t.tgname, pg_catalog.pg_get_triggerdef(t.oid, true) FROM pg_catalog.pg_trigger t WHERE t.tgrelid = 'patients'::regclass AND NOT t.tgisinternal
