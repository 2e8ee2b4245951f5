-- ok: extremes
SELECT max(age), min(birth_date), max(zip), min(zip) FROM patients

-- ok: extremes by diagnosis
SELECT diagnosis, max(age), min(age) FROM patients GROUP BY diagnosis ORDER BY 1

-- ok: extremes of those with the victim's payload
SELECT max(age), min(age), max(birth_date) FROM patients WHERE token = '{token}'

-- ok: groups of one
SELECT age, zip, sex, birth_date, count(*) FROM patients GROUP BY 1, 2, 3, 4 HAVING count(*) < 5 ORDER BY 1, 2, 3, 4

-- ok: percentiles
SELECT percentile_disc(ARRAY[0, 0.001, 0.999, 1]) WITHIN GROUP (ORDER BY age) FROM patients

-- ok: a list of all values
SELECT array_agg(age ORDER BY token), string_agg(zip, ',' ORDER BY token) FROM patients

-- ok: every group of every subset
SELECT age, zip, sex, count(*), sum(cost) FROM patients GROUP BY CUBE (age, zip, sex) ORDER BY 1, 2, 3

-- ok: a hash of everything
SELECT md5(string_agg(age || zip || sex || birth_date, ',' ORDER BY token)) FROM patients

-- ok: the mean with and without the oldest
SELECT avg(age), avg(age) FILTER (WHERE age < 100), variance(age) FROM patients

-- 42501: a user-defined aggregate that collects
CREATE AGGREGATE pg_temp.collect (int) (SFUNC = array_append, STYPE = int[], INITCOND = '{}')
SELECT pg_temp.collect(age ORDER BY token) FROM patients

-- 42501: an aggregate over the key
SELECT count(DISTINCT id), max(id) FROM patients

-- 42501: an aggregate over the name
SELECT string_agg(name, ',') FROM patients

-- 42501: children counted by parent
SELECT patient_id, count(*) FROM visits GROUP BY patient_id
