-- ok: a list of suspects
SELECT v.who, p.diagnosis FROM (VALUES ('victim', {age}, '{zip}')) AS v (who, age, zip) JOIN patients p USING (age, zip)

-- ok: a list of suspects, outer
SELECT v.who, count(p.token) FROM (VALUES ('victim', '{birth_date}'::date), ('nobody', '1800-01-01')) AS v (who, day) LEFT JOIN patients p ON p.birth_date = v.day GROUP BY 1 ORDER BY 1

-- ok: a lookup table of every age
SELECT n.n, count(p.token) FROM numbers n LEFT JOIN patients p ON p.age = n.n WHERE n.n < 130 GROUP BY 1 ORDER BY 1

-- ok: a temporary table of suspects
CREATE TEMP TABLE suspects (age int, zip text)
INSERT INTO suspects VALUES ({age}, '{zip}')
SELECT p.token, p.diagnosis FROM suspects s JOIN patients p ON p.age = s.age AND p.zip = s.zip

-- ok: a self-join on payload
SELECT p.token, p.age, q.age FROM patients p JOIN patients q ON p.token = q.token WHERE p.age IS DISTINCT FROM q.age OR p.zip <> q.zip

-- ok: released twice, then linked by payload
CREATE TEMP TABLE one AS SELECT token, age, sex FROM patients
CREATE TEMP TABLE two AS SELECT token, zip, birth_date FROM patients
SELECT age, sex, zip, birth_date, count(*) FROM one JOIN two USING (token) GROUP BY 1, 2, 3, 4 HAVING count(*) < 5 ORDER BY 1, 2, 3, 4

-- ok: a natural join with what is known
CREATE TEMP TABLE known (age int, zip text, sex text)
INSERT INTO known VALUES ({age}, '{zip}', '{sex}')
SELECT token FROM patients NATURAL JOIN known

-- ok: a correlated probe
SELECT n.n, EXISTS (SELECT FROM patients p WHERE p.age = n.n AND p.diagnosis = '{diagnosis}') FROM numbers n WHERE n.n BETWEEN 95 AND 110 ORDER BY 1

-- ok: except all with a guess
SELECT age, zip FROM patients EXCEPT ALL SELECT {age}, '{zip}' ORDER BY 1, 2

-- ok: a join on the key, for what the one person of an age has spent
SELECT v.cost FROM visits v JOIN patients p ON v.patient_id = p.id WHERE p.age = {age}

-- 42501: a join on the key, for the diagnosis
SELECT p.diagnosis, v.cost FROM visits v JOIN patients p ON v.patient_id = p.id WHERE p.age = {age}

-- 42501: a join on the key, of one patient by number
SELECT v.cost FROM visits v JOIN patients p ON v.patient_id = p.id AND p.id = {id}

-- 0A000: patients without visits by an outer join
SELECT p.age, v.cost FROM patients p LEFT JOIN visits v ON v.patient_id = p.id WHERE v.cost IS NULL

-- 42501: patients without visits by NOT EXISTS
SELECT age FROM patients p WHERE NOT EXISTS (SELECT FROM visits v WHERE v.patient_id = p.id)

-- 42703: the number of a joined row
SELECT v.tailor_label_row FROM visits v JOIN patients p ON v.patient_id = p.id

-- 42501: a join on the name
SELECT age FROM patients p JOIN (VALUES ('{name}')) v (name) USING (name)

-- 42501: a natural join that would merge a hidden column
CREATE TEMP TABLE named (name text)
SELECT age FROM patients JOIN named USING (name)
