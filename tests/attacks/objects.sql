-- 42501: a function of one's own
CREATE FUNCTION pg_temp.peek() RETURNS SETOF text LANGUAGE sql AS 'SELECT 1::text'
CREATE OR REPLACE FUNCTION pg_temp.peek() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'SELECT name FROM public.patients'; END $$
SELECT * FROM pg_temp.peek()

-- 42501: an anonymous block
DO $$ BEGIN RAISE NOTICE '%', (SELECT name FROM public.patients LIMIT 1); END $$

-- 42501: SQL in a string
SELECT query_to_xml('SELECT name, age FROM public.patients', true, false, '')

-- 42501: SQL in a string, put together
SELECT query_to_xml('SELECT name FROM public.pat' || 'ients', true, false, '')

-- 42501: a table as XML
SELECT table_to_xml('public.patients', true, false, '')

-- ok: a schema as XML, which has only what one may read
SELECT schema_to_xml('public', true, false, '')

-- 42501: a release as XML
SELECT query_to_xml('SELECT * FROM tailor_rel' || 'ease.{view}', true, false, '')

-- 42501: a release as rules that rewrite a search, which the server reads as a cursor
SELECT count(*), ts_rewrite('a', 'SELECT ''a''::tsquery, plainto_tsquery(string_agg(diagnosis, '' '')) FROM tailor_rel' || 'ease.{view}') FROM patients

-- 42501: a release by its own name
SELECT * FROM tailor_release.{view}

-- 42501: the stored copy
SELECT * FROM tailor_store.epoch_{epoch}

-- 42501: the stored copy by a string
SELECT query_to_xml('SELECT * FROM tailor' || '_store.epoch_{epoch}', true, false, '')

-- 42501: the tuples
DO $$ BEGIN PERFORM * FROM tailor_store.tuples_{epoch}; END $$

-- 42501: what is said of chains
SELECT query_to_xml('SELECT stored FROM tail' || 'or.chain', true, false, '')

-- 42501: the key of tickets
SELECT query_to_xml('SELECT key FROM tail' || 'or.admission_key', true, false, '')

-- 42501: a view of one's own
CREATE TEMP VIEW mine AS SELECT age FROM patients

-- 42501: a view made out of sight
DO $$ BEGIN EXECUTE 'CREATE TEMP VIEW mine AS SELECT name FROM public.pat' || 'ients'; END $$
SELECT * FROM mine

-- 42501: a rule on a table of one's own
CREATE RULE r AS ON INSERT TO patients DO ALSO SELECT 1

-- 42501: a trigger on the table
CREATE TRIGGER t AFTER INSERT ON patients EXECUTE FUNCTION f()

-- 42501: an index on the table
CREATE INDEX ON patients (name)

-- 42501: extended statistics
CREATE STATISTICS s ON age, zip FROM patients

-- 42501: another role
SET ROLE dba

-- 42501: the owner of releases
SET SESSION AUTHORIZATION tailor_owner

-- 42501: rights for oneself
GRANT SELECT ON patients TO PUBLIC

-- 42501: the name of a release on the search path
SET search_path = tailor_release, public
SELECT * FROM {view}

-- ok: a schema of one's own in front
CREATE TEMP TABLE patients (age int, token text)
INSERT INTO patients VALUES (1, 'mine')
SELECT * FROM patients

-- ok: the research schema
SELECT count(*), max(age) FROM research.patients

-- 42501: a lasting table through a string
DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE t AS SELECT * FROM public.pat' || 'ients'; END $$

-- 0A000: row as a record
SELECT row_to_json(p) FROM patients p WHERE age = {age}

-- 0A000: row as text
SELECT p::text FROM patients p

-- 42501: the audit log
SELECT record FROM tailor.audit_log

-- 42501: an operator of one's own
CREATE FUNCTION pg_temp.shows(a integer, b integer) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', (SELECT count(*) FROM tailor_release.{view}); RETURN true; END $$
CREATE OPERATOR pg_temp.=== (LEFTARG = integer, RIGHTARG = integer, FUNCTION = pg_temp.shows)
SELECT count(*) FROM patients WHERE age OPERATOR(pg_temp.===) 40

-- 42501: an order of one's own
CREATE FUNCTION pg_temp.less(a numeric, b numeric) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', a; RETURN a < b; END $$
CREATE OPERATOR pg_temp.< (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = pg_temp.less)
SELECT cost FROM patients ORDER BY cost USING OPERATOR(pg_temp.<)

-- 42501: a type whose constraint asks for more
CREATE FUNCTION pg_temp.looks(a text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', (SELECT count(*) FROM tailor_release.{view}); RETURN true; END $$
CREATE DOMAIN pg_temp.peeking AS text CHECK (pg_temp.looks(VALUE))
SELECT diagnosis::pg_temp.peeking FROM patients
