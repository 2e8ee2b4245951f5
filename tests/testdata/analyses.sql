-- Analyses as an epidemiologist writes them, over the hospital of the demo. The comment above a
-- query is its name; each counts people (or visits) beside what it measures.

-- Sex ratio
SELECT sex, count(*) AS people FROM patients GROUP BY sex;

-- Mean age by diagnosis
SELECT diagnosis, count(*) AS people, avg(age) AS age FROM patients GROUP BY diagnosis;

-- Spread of ages by sex
SELECT sex, count(*) AS people, stddev_samp(age) AS spread FROM patients GROUP BY sex;

-- Median age by ward
SELECT ward, count(*) AS people, percentile_cont(0.5) WITHIN GROUP (ORDER BY age) AS median FROM patients GROUP BY ward;

-- Five-year age bands
SELECT age / 5 * 5 AS band, count(*) AS people FROM patients GROUP BY band;

-- Ten-year bands by sex, with costs
SELECT age / 10 AS decade, sex, count(*) AS people, avg(cost) AS cost FROM patients GROUP BY decade, sex;

-- Bands of the WHO
SELECT width_bucket(age, ARRAY[0, 1, 5, 15, 25, 45, 65, 75, 85]) AS band, count(*) AS people FROM patients GROUP BY band;

-- Odd bands
SELECT width_bucket(age, ARRAY[0, 7, 13, 22, 33, 47, 58, 71, 83]) AS band, count(*) AS people FROM patients GROUP BY band;

-- Single years of age
SELECT age, count(*) AS people FROM patients GROUP BY age;

-- People of exactly forty
SELECT count(*) AS people, avg(cost) AS cost FROM patients WHERE age = 40;

-- The oldest
SELECT count(*) AS people, avg(cost) AS cost FROM patients WHERE age >= 90;

-- Children under one
SELECT count(*) AS people FROM patients WHERE age < 1;

-- Working age
SELECT count(*) AS people, avg(age) AS age FROM patients WHERE age BETWEEN 18 AND 64;

-- Births by year
SELECT extract(year FROM birth_date) AS year, count(*) AS people FROM patients GROUP BY year;

-- Births by month of the year
SELECT extract(month FROM birth_date) AS month, count(*) AS people FROM patients GROUP BY month;

-- Births by day of the week
SELECT extract(dow FROM birth_date) AS day, count(*) AS people FROM patients GROUP BY day;

-- Births by quarter, from 1990
SELECT date_trunc('quarter', birth_date)::date AS quarter, count(*) AS people FROM patients
WHERE birth_date >= '1990-01-01' GROUP BY quarter;

-- Cohort of 1945 to 1949
SELECT diagnosis, count(*) AS people FROM patients WHERE birth_date BETWEEN '1945-01-01' AND '1949-12-31' GROUP BY diagnosis;

-- Postcodes
SELECT zip, count(*) AS people FROM patients GROUP BY zip;

-- Areas by the first two digits
SELECT left(zip, 2) AS area, count(*) AS people, avg(age) AS age FROM patients GROUP BY area;

-- Cities by a join
SELECT city, count(*) AS people FROM patients JOIN zip_city USING (zip) GROUP BY city;

-- Cities and age bands
SELECT city, age / 20 AS band, count(*) AS people FROM patients JOIN zip_city USING (zip) GROUP BY city, band;

-- Minorities
SELECT race, count(*) AS people FROM patients GROUP BY race;

-- Minorities by area
SELECT left(zip, 1) AS area, race, count(*) AS people FROM patients GROUP BY area, race;

-- Race is unknown
SELECT count(*) AS people FROM patients WHERE race IS NULL;

-- Prevalence of diabetes by age band
SELECT age / 10 AS decade, count(*) AS people, avg((diagnosis LIKE '%diabetes%')::int) AS prevalence FROM patients WHERE age >= 30 GROUP BY decade;

-- Mean cost by age band and ward
SELECT ward, age / 20 AS band, count(*) AS people, avg(cost) AS cost FROM patients GROUP BY ward, band;

-- Cost rises with age
SELECT count(*) AS people, regr_intercept(cost, age) AS at_birth, 1 + corr(cost, age) AS correlation_and_one FROM patients;

-- Odds of stroke at sixty and older
SELECT count(*) AS people, (count(*) FILTER (WHERE age >= 60 AND diagnosis = 'stroke') * count(*) FILTER (WHERE age < 60 AND diagnosis <> 'stroke'))::float8
    / (count(*) FILTER (WHERE age >= 60 AND diagnosis <> 'stroke') * count(*) FILTER (WHERE age < 60 AND diagnosis = 'stroke')) AS odds_ratio FROM patients;

-- Share of the old by ward
SELECT ward, count(*) AS people, avg((age >= 75)::int) AS share FROM patients GROUP BY ward;

-- Women of childbearing age by area
SELECT left(zip, 1) AS area, count(*) AS people FROM patients WHERE sex = 'female' AND age BETWEEN 15 AND 49 GROUP BY area;

-- The five most frequent diagnoses of the old
SELECT diagnosis, count(*) AS people FROM patients WHERE age >= 70 GROUP BY diagnosis ORDER BY people DESC LIMIT 5;

-- Costly patients by age band
SELECT age / 10 AS decade, count(*) AS people FROM patients WHERE cost > 2000 GROUP BY decade;

-- Running total of births
SELECT decade, count(*) AS people, sum(count(*)) OVER (ORDER BY decade) AS so_far
FROM (SELECT extract(year FROM birth_date)::int / 10 AS decade FROM patients) p GROUP BY decade;

-- Visits by age band
SELECT p.age / 10 AS decade, count(*) AS visits, avg(v.cost) AS cost FROM patients p JOIN visits v ON v.patient_id = p.id GROUP BY decade;

-- Visits by area
SELECT left(p.zip, 1) AS area, count(*) AS visits FROM patients p JOIN visits v ON v.patient_id = p.id GROUP BY area;

-- Age standardised rate of asthma by sex
WITH standard (band, weight) AS (VALUES (1, 0.19), (2, 0.25), (3, 0.32), (4, 0.14), (5, 0.10)),
     observed AS (SELECT sex, width_bucket(age, ARRAY[0, 18, 40, 65, 80]) AS band, count(*) AS people,
                         count(*) FILTER (WHERE diagnosis = 'asthma') AS cases FROM patients GROUP BY sex, band)
SELECT sex, sum(people) AS people, sum(1000 * weight * cases / people) AS rate FROM observed JOIN standard USING (band) GROUP BY sex;
