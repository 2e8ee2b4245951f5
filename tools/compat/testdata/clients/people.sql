-- Synthetic people with columns of the types that the clients read, and a policy on them.
CREATE TABLE postcodes (zip text PRIMARY KEY, city text NOT NULL);
INSERT INTO postcodes SELECT (10000 + n * 71)::text, 'city ' || n % 5 FROM generate_series(1, 25) n;

CREATE TABLE people (
    id        integer PRIMARY KEY,
    name      text NOT NULL,
    age       integer,
    height    smallint,
    weight    numeric(5, 1),
    born      date,
    member    boolean,
    sex       text,
    zip       text,
    visits    bigint,
    cost      numeric(10, 2),
    score     double precision,
    admitted  timestamp,
    consents  boolean,
    diagnosis text
);
SELECT setseed(0.25);
INSERT INTO people SELECT n, 'person ' || n,
    CASE WHEN n % 40 > 0 THEN 95 * pow(random(), 2) END, 150 + 45 * random(), 40 + 80 * random(),
    date '1930-01-01' + (30000 * sqrt(random()))::integer,
    CASE WHEN n % 50 > 0 THEN n % 3 = 0 END, CASE WHEN random() < 0.5 THEN 'female' ELSE 'male' END,
    (10000 + (1 + floor(30 * pow(random(), 2))) * 71)::text,
    CASE WHEN n % 30 > 0 THEN 5000000000 + n END, round((1000 * random())::numeric, 2), n / 8.0,
    timestamp '2024-01-01' + interval '1 second' * n * 977, CASE WHEN n % 20 > 0 THEN n % 2 = 0 END,
    CASE WHEN n % 25 > 0 THEN 'diagnosis ' || n % 7 END
    FROM generate_series(1, 3000) n;

CREATE ROLE researcher LOGIN PASSWORD 'researcher';
GRANT SELECT ON postcodes TO PUBLIC;
CALL tailor.define_hierarchy('age', 'interval', '{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('cm', 'interval', '{"widths": [10, 50], "lower": 100, "upper": 249}');
CALL tailor.define_hierarchy('kg', 'interval', '{"widths": [10, 20], "lower": 0, "upper": 200}');
CALL tailor.define_hierarchy('day', 'date', '{"levels": ["month", "year", "decade"], "lower": "1900-01-01", "upper": "2029-12-31"}');
CALL tailor.define_hierarchy('yes', 'table', '{"paths": [["true"], ["false"]]}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["female"], ["male"]]}');
CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2]}');
CALL tailor.protect('people', subject => 'id', k => 5);
CALL tailor.classify('people', 'id', 'direct_identifier');
CALL tailor.classify('people', 'name', 'direct_identifier');
CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('people', 'height', 'quasi_identifier', hierarchy => 'cm');
CALL tailor.classify('people', 'weight', 'quasi_identifier', hierarchy => 'kg');
CALL tailor.classify('people', 'born', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('people', 'member', 'quasi_identifier', hierarchy => 'yes');
CALL tailor.classify('people', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('people', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('people', 'visits', 'non_sensitive');
CALL tailor.classify('people', 'cost', 'non_sensitive');
CALL tailor.classify('people', 'score', 'non_sensitive');
CALL tailor.classify('people', 'admitted', 'non_sensitive');
CALL tailor.classify('people', 'consents', 'non_sensitive');
CALL tailor.classify('people', 'diagnosis', 'sensitive');
CALL tailor.grant_reader('researcher');
CALL tailor.activate('people');
