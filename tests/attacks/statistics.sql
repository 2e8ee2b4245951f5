-- 42501: most common values
SELECT most_common_vals, histogram_bounds FROM pg_stats WHERE tablename = 'patients'

-- 42501: most common values by a string
SELECT query_to_xml('SELECT stavalues1 FROM pg_stat' || 'istic', true, false, '')

-- ok: most common values by a string, of the view for users
SELECT query_to_xml('SELECT attname, histogram_bounds::text FROM pg_st' || 'ats WHERE schemaname IN (''public'', ''tailor_store'') AND tablename <> ''numbers'' AND tablename <> ''zip_city''', true, false, '')

-- ok: the estimate of rows
EXPLAIN SELECT * FROM patients WHERE age = {age}

-- ok: the number of rows removed by a filter
EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT * FROM patients WHERE zip = '{zip}'

-- 42501: the plan of a string
DO $$ DECLARE r text; BEGIN FOR r IN EXECUTE 'EXPLAIN ANALYZE SELECT * FROM public.pat' || 'ients WHERE name = ''x''' LOOP RAISE NOTICE '%', r; END LOOP; END $$

-- ok: the plan of the release by a string, which is not run
DO $$ DECLARE r text; BEGIN FOR r IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT count(*) FROM tailor_rel' || 'ease.{view} WHERE age = {age}' LOOP RAISE NOTICE '%', r; END LOOP; END $$

-- ok: sizes
SELECT relname, reltuples FROM pg_class WHERE relname IN ('patients', 'visits') AND relkind = 'r' ORDER BY 1

-- ok: definitions
SELECT pg_get_viewdef(oid) FROM pg_class WHERE relname = 'patients' AND relkind = 'v'

-- ok: what others are running
SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%patients%' AND usename <> current_user

-- 42501: a file of the server
SELECT pg_read_file('PG_VERSION')

-- 42501: a large object from a file
SELECT lo_import('/etc/passwd')

-- 42501: the table as a file
COPY patients TO '/tmp/tailor-attack'

-- 42501: the table to a program
COPY (SELECT age FROM patients) TO PROGRAM 'cat'
