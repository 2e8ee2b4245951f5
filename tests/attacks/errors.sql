-- 22P02: a cast that quotes
SELECT zip::int FROM patients

-- 22P02: a cast of a sensitive value
SELECT diagnosis::int FROM patients WHERE token = '{token}'

-- 22012: a division by zero for the victim alone
SELECT 1 / (CASE WHEN age = {age} AND zip = '{zip}' THEN 0 ELSE 1 END) FROM patients WHERE age > 0 OR 1 / 0 = 1

-- ok: a division by zero that would tell
SELECT sum(1 / ({age} - age + 1000)) FROM patients

-- 22P02: a cast of what is collected
SELECT (string_agg(zip || age, ','))::int FROM patients

-- 42501: a cast of a hidden column
SELECT name::int FROM patients

-- 42703: a misspelt column
SELECT agee FROM patients

-- 42883: a function that does not exist
SELECT nothing(age) FROM patients

-- 42501: an exception raised with a value
CREATE FUNCTION pg_temp.shout(v text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', v; END $$
SELECT pg_temp.shout(name_of) FROM (SELECT zip AS name_of FROM patients WHERE token = '{token}') x

-- 42501: a notice raised with every value
CREATE FUNCTION pg_temp.mutter(v text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', v; RETURN v; END $$
SELECT pg_temp.mutter(age::text) FROM patients ORDER BY token LIMIT 5

-- 23505: a constraint that quotes
CREATE TEMP TABLE unique_zip (zip text UNIQUE)
INSERT INTO unique_zip SELECT 'x' UNION ALL SELECT 'x'

-- 42601: a syntax error beside a literal
SELECT age FROM patients WHERE zip = '{zip}' AND AND
