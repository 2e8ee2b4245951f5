-- ok: the first row of the table
SELECT token, age, diagnosis FROM patients LIMIT 1

-- ok: the row at a position
SELECT token, zip FROM patients OFFSET {id} - 1 LIMIT 1

-- ok: numbers of rows
SELECT token, row_number() OVER () FROM patients

-- ok: the order of equal values
SELECT token FROM patients ORDER BY age DESC, zip LIMIT 20

-- ok: rank by age
SELECT token, rank() OVER (ORDER BY age DESC, birth_date) AS r FROM patients ORDER BY r, token LIMIT 20

-- ok: the neighbour by window
SELECT token, lag(token) OVER (ORDER BY birth_date, token), lead(age) OVER (ORDER BY birth_date, token) FROM patients ORDER BY token LIMIT 50

-- ok: the order inside an aggregate
SELECT array_agg(token ORDER BY age DESC, birth_date, token) FROM patients

-- ok: DISTINCT ON keeps one row
SELECT DISTINCT ON (sex) sex, token, age FROM patients ORDER BY sex, age DESC, token

-- ok: ties and peers
SELECT token FROM patients ORDER BY age DESC FETCH FIRST 1 ROW WITH TIES

-- 42501: physical position
SELECT ctid, age FROM patients

-- 42501: the order of insertion
SELECT token FROM patients ORDER BY xmin::text, cmin::text

-- 0A000: a sample by page
SELECT token FROM patients TABLESAMPLE SYSTEM (1) REPEATABLE (1)
