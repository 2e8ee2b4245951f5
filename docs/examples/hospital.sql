-- A workload for tailor fidelity over the hospital of the demo. The comment above a query is its
-- name. Each query counts people beside what it measures, so that small groups are told apart.

-- Everybody
SELECT count(*) AS people, avg(age) AS age, avg(cost) AS cost FROM patients;

-- Cost by ward
SELECT ward, count(*) AS people, avg(cost) AS cost FROM patients GROUP BY ward;

-- Sex and race
SELECT sex, race, count(*) AS people FROM patients GROUP BY sex, race;

-- Age bands
SELECT width_bucket(age, ARRAY[0, 18, 40, 65, 80]) AS band, count(*) AS people, avg(cost) AS cost
FROM patients GROUP BY band;

-- Single years of age
SELECT age, count(*) AS people FROM patients GROUP BY age;

-- Births by year, from 1940
SELECT date_trunc('year', birth_date)::date AS year, count(*) AS people
FROM patients WHERE birth_date >= '1940-01-01' GROUP BY year;

-- Diagnoses of people of 65 and older
SELECT diagnosis, count(*) AS people, avg(age) AS age
FROM patients WHERE age >= 65 GROUP BY diagnosis;

-- Cities
SELECT city, count(*) AS people, avg(age) AS age
FROM patients JOIN zip_city USING (zip) GROUP BY city;

-- Age, sex and area together: most groups are small
SELECT age, sex, zip, count(*) AS people FROM patients GROUP BY age, sex, zip;

-- Visits of a patient, by sex
SELECT p.sex, count(*) AS visits, avg(v.cost) AS cost
FROM visits v JOIN patients p ON p.id = v.patient_id GROUP BY p.sex;

-- Visits by ward and quarter
SELECT ward, date_trunc('quarter', day)::date AS quarter, count(*) AS visits
FROM visits GROUP BY ward, quarter;

-- Refused: names are direct identifiers
SELECT name, count(*) AS people FROM patients GROUP BY name;

-- Refused: a join shows quasi-identifiers of the parent only
SELECT p.ward, p.sex, count(*) AS visits
FROM visits v JOIN patients p ON p.id = v.patient_id GROUP BY p.ward, p.sex;
