SELECT s.oid, s.stxrelid::pg_catalog.regclass, s.stxnamespace::pg_catalog.regnamespace::pg_catalog.text AS in_schema, s.stxname, 'd' = ANY(s.stxkind) AS ndistinct
FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = '16450' ORDER BY in_schema, s.stxname
