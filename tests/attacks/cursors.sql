-- ok: a cursor with a filter on raw values
BEGIN
DECLARE c CURSOR FOR SELECT token FROM patients WHERE age = {age} AND zip = '{zip}'
FETCH ALL FROM c
COMMIT

-- ok: a cursor, batch by batch
BEGIN
DECLARE c SCROLL CURSOR FOR SELECT token, age FROM patients ORDER BY age DESC, token
FETCH 1 FROM c
FETCH 2 FROM c
FETCH PRIOR FROM c
FETCH LAST FROM c
COMMIT

-- ok: a cursor that outlives its transaction
BEGIN
DECLARE h CURSOR WITH HOLD FOR SELECT token, age, zip FROM patients ORDER BY token
COMMIT
FETCH 3 FROM h
CLOSE h

-- 42501: a cursor over a hidden column
BEGIN
DECLARE c CURSOR FOR SELECT name FROM patients

-- 0A000: a cursor for updates
BEGIN
DECLARE c CURSOR FOR SELECT age FROM patients FOR UPDATE

-- 25P02: a cursor opened in a block and left to be fetched
BEGIN
DO $$ DECLARE c refcursor := 'left'; BEGIN OPEN c FOR EXECUTE 'SELECT name FROM public.pat' || 'ients'; END $$
FETCH ALL FROM "left"

-- 42501: a cursor over the release opened in a block
BEGIN
DO $$ DECLARE c refcursor := 'left'; BEGIN OPEN c FOR EXECUTE 'SELECT age FROM tailor_rel' || 'ease.{view}'; END $$
FETCH ALL FROM "left"

-- 42501: the same, under the name of a cursor that is recorded
BEGIN
DECLARE "left" CURSOR FOR SELECT 1 FROM patients
CLOSE "left"
DO $$ DECLARE c refcursor := 'left'; BEGIN OPEN c FOR EXECUTE 'SELECT age FROM tailor_rel' || 'ease.{view}'; END $$
FETCH ALL FROM "left"

-- ok: prepared, then probed
PREPARE probe (int, text) AS SELECT count(*) FROM patients WHERE age = $1 AND zip = $2
EXECUTE probe ({age}, '{zip}')
EXECUTE probe ({age} - 1, '{zip}')

-- 42501: prepared in a block
DO $$ BEGIN EXECUTE 'PREPARE hidden AS SELECT name FROM public.pat' || 'ients'; END $$
EXECUTE hidden

-- 26000: prepared under the proxy's names
PREPARE q AS SELECT age FROM patients
DEALLOCATE q
EXECUTE q

-- 42501: executed past the plan
PREPARE q AS SELECT age FROM patients
EXECUTE tailor_own_1

-- 42501: executed in a block
PREPARE q AS SELECT age FROM patients
DO $$ BEGIN EXECUTE 'EXECUTE tailor_own_1'; END $$

-- ok: the plan of what is prepared
PREPARE q AS SELECT age FROM patients
EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT age FROM patients

-- ok: copied out
COPY (SELECT token, age FROM patients WHERE age = {age}) TO STDOUT

-- 42501: the table copied out
COPY patients TO STDOUT

-- 42501: copied in
COPY patients FROM STDIN

-- ok: kept, then asked again and again
CREATE TEMP TABLE mine AS SELECT * FROM patients
SELECT count(*) FROM mine WHERE age = {age}
SELECT * FROM mine WHERE token IN ('{token}', '{other}') ORDER BY token

-- 0A000: kept where others can read
CREATE TABLE public.mine AS SELECT * FROM patients

-- 42501: a cursor that a block opens, read when the transaction of a recorded one ends
BEGIN
DECLARE rec CURSOR WITH HOLD FOR SELECT 1 FROM patients
DO $$ BEGIN EXECUTE 'DECLARE other CURSOR WITH HOLD FOR SELECT token, age, zip FROM tailor_rel' || 'ease.{view}'; END $$
COMMIT

-- 42501: a cursor that a block opens, read when a recorded text ends the transaction
BEGIN
DO $$ BEGIN EXECUTE 'DECLARE other CURSOR WITH HOLD FOR SELECT token, age, zip FROM tailor_rel' || 'ease.{view}'; END $$
SELECT count(*) FROM patients; COMMIT

-- 0A000: a cursor that a block opens behind a recorded statement
SELECT count(*) FROM patients; DO $$ BEGIN EXECUTE 'DECLARE other CURSOR WITH HOLD FOR SELECT token, age, zip FROM tailor_rel' || 'ease.{view}'; END $$

-- ok: a held cursor over anything else, of an earlier transaction
DECLARE mine CURSOR WITH HOLD FOR SELECT 1
SELECT count(*) FROM patients
FETCH ALL FROM mine

-- 42P03: a cursor in the place of the proxy's own portal
BEGIN
DO $$ BEGIN EXECUTE 'DECLARE tailor_' || 'own_query CURSOR FOR SELECT age FROM tailor_rel' || 'ease.{view}'; END $$
SELECT count(*) FROM patients
