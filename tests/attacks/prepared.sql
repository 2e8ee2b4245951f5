-- ok: a filter on raw values by way of parameters
PREPARE q (int, text, date) AS SELECT token FROM patients WHERE age = $1 AND zip = $2 AND birth_date = $3
EXECUTE q ({age}, '{zip}', '{birth_date}')

-- ok: differences of one statement, value by value
PREPARE q (int) AS SELECT count(*), avg(cost) FROM patients WHERE age <= $1
EXECUTE q ({age})
EXECUTE q ({age} - 1)

-- 42501: a hidden column prepared
PREPARE q AS SELECT count(*) FROM patients WHERE name = $1

-- 42501: a hidden column as an argument
PREPARE q (text) AS SELECT count(*) FROM patients WHERE diagnosis = $1
EXECUTE q ((SELECT name FROM patients LIMIT 1))

-- 42703: a column of the statement's table as an argument
PREPARE q (text) AS SELECT count(*) FROM patients WHERE diagnosis = $1
EXECUTE q (zip)

-- 42501: what was prepared, run in a block
PREPARE q AS SELECT token, age, zip FROM patients
DO $$ BEGIN EXECUTE 'EXECUTE q'; END $$

-- 42501: what was prepared in a block, over the table
DO $$ BEGIN EXECUTE 'PREPARE q AS SELECT name FROM public.pat' || 'ients'; END $$
EXECUTE q

-- 42501: what was prepared in a block, over the release
DO $$ BEGIN EXECUTE 'PREPARE q AS SELECT token, age FROM tailor_rel' || 'ease.{view}'; END $$
EXECUTE q

-- 42501: a name given to another statement between PREPARE and EXECUTE
PREPARE q AS SELECT count(*) FROM patients
DO $$ BEGIN EXECUTE 'DEALLOCATE q'; EXECUTE 'PREPARE q AS SELECT token, age FROM tailor_rel' || 'ease.{view}'; END $$
EXECUTE q

-- 42501: a name given to another statement that says it is the client's
PREPARE q AS SELECT count(*) FROM patients
DO $$ BEGIN EXECUTE 'DEALLOCATE q'; EXECUTE E'PREPARE q AS SELECT token, age FROM tailor_rel' || E'ease.{view}\n/* tailor keeps UFJFUEFSRSBxIEFTIFNFTEVDVCBuYW1lIEZST00gcGF0aWVudHM= */'; END $$
EXECUTE q

-- 42501: a name taken away by an argument
CREATE FUNCTION pg_temp.swap() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DEALLOCATE q'; EXECUTE 'PREPARE q (int) AS SELECT age FROM tailor_rel' || 'ease.{view}'; RETURN 1; END $$
PREPARE q (int) AS SELECT count(*) FROM patients WHERE age > $1
EXECUTE q (pg_temp.swap())

-- 42501: a function as an argument that is shown the release
CREATE FUNCTION pg_temp.peek(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT max(age) FROM tailor_release.{view}); END $$
PREPARE q (int) AS SELECT count(*) FROM patients WHERE age > $1
EXECUTE q (pg_temp.peek(1))

-- 0A000: a statement of a block's run beside a recorded one
DO $$ BEGIN EXECUTE 'PREPARE q AS SELECT token, age, zip FROM tailor_rel' || 'ease.{view}'; END $$
SELECT count(*) FROM patients; EXECUTE q

-- 0A000: a statement of a block's explained beside a recorded one
DO $$ BEGIN EXECUTE 'PREPARE q AS SELECT token, age, zip FROM tailor_rel' || 'ease.{view}'; END $$
SELECT count(*) FROM patients; EXPLAIN ANALYZE EXECUTE q

-- 0A000: a statement of a block's kept beside a recorded one
DO $$ BEGIN EXECUTE 'PREPARE q AS SELECT token, age, zip FROM tailor_rel' || 'ease.{view}'; END $$
SELECT count(*) FROM patients; CREATE TEMP TABLE kept AS EXECUTE q

-- 0A000: a cursor of a block's fetched beside a recorded statement
BEGIN
DO $$ DECLARE c refcursor := 'left'; BEGIN OPEN c FOR EXECUTE 'SELECT token, age, zip FROM tailor_rel' || 'ease.{view}'; END $$
SELECT count(*) FROM patients; FETCH ALL FROM "left"

-- ok: estimates of what was prepared
PREPARE q (int, text) AS SELECT token FROM patients WHERE age = $1 AND zip = $2
EXPLAIN EXECUTE q ({age}, '{zip}')

-- 0A000: kept where others could read it
PREPARE q AS SELECT token, age, zip FROM patients
CREATE TABLE kept AS EXECUTE q

-- ok: kept in a temporary table
PREPARE q AS SELECT token, age, zip FROM patients
CREATE TEMP TABLE kept AS EXECUTE q
SELECT * FROM kept WHERE token = '{token}'

-- 22P02: a value told by the error of a cast
PREPARE q AS SELECT count(*) FROM patients WHERE CAST(diagnosis || $1 AS int) = 1
EXECUTE q ('x')

-- ok: order and position by parameters
PREPARE q (int) AS SELECT token, age FROM patients ORDER BY age, token LIMIT 3 OFFSET $1
EXECUTE q (100)

-- 26000: forgotten in between
PREPARE q AS SELECT token, age FROM patients
DISCARD ALL
EXECUTE q

-- ok: what the server shows of a prepared statement
PREPARE q AS SELECT token, age, zip FROM patients WHERE zip = '{zip}'
EXECUTE q
SELECT name, from_sql, statement ~ 'tailor [-0-9,]+ [0-9a-f]{64}' FROM pg_prepared_statements

-- ok: the proxy's own statement, given to another text in a block
SELECT count(*) FROM patients
DO $$ BEGIN EXECUTE 'DEALLOCATE tailor_' || 'own_query'; EXECUTE 'PREPARE tailor_' || 'own_query AS SELECT age FROM tailor_rel' || 'ease.{view}'; END $$
SELECT count(*) FROM patients
