SELECT age OPERATOR(pg_catalog.+) 1 AS next, cost::pg_catalog.int8 FROM patients WHERE sex OPERATOR(pg_catalog.=) ANY (SELECT 'F'::text) ORDER BY cost USING OPERATOR(pg_catalog.<)
