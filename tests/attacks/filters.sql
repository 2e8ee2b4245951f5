-- ok: the exact age of the oldest
SELECT token, diagnosis FROM patients WHERE age = {age}

-- ok: the exact birth date
SELECT count(*) FROM patients WHERE birth_date = '{birth_date}'

-- ok: the exact area
SELECT token FROM patients WHERE zip = '{zip}' ORDER BY token

-- ok: a range that only the victim is in
SELECT count(*), sum(cost) FROM patients WHERE age >= {age} - 1 AND age <= {age}

-- ok: bisection by comparison
SELECT count(*) FROM patients WHERE age > 100
SELECT count(*) FROM patients WHERE age > 101
SELECT count(*) FROM patients WHERE age > 102
SELECT count(*) FROM patients WHERE age > 103

-- ok: differencing of two counts
SELECT count(*) FROM patients WHERE diagnosis = '{diagnosis}'
SELECT count(*) FROM patients WHERE diagnosis = '{diagnosis}' AND NOT (age = {age} AND zip = '{zip}')

-- ok: differencing of two sums
SELECT sum(cost) FROM patients WHERE sex = 'female'
SELECT sum(cost) FROM patients WHERE sex = 'female' AND NOT (age = {age})

-- ok: differencing in one statement
SELECT (SELECT sum(cost) FROM patients) - (SELECT sum(cost) FROM patients WHERE NOT (birth_date = '{birth_date}'))

-- ok: a pattern inside the area
SELECT count(*) FROM patients WHERE zip LIKE '{zip}%' OR zip ~ '{zip}'

-- ok: arithmetic that singles out
SELECT sum(CASE WHEN age = {age} THEN cost ELSE 0 END) FROM patients

-- ok: a filter on the aggregate
SELECT max(cost) FILTER (WHERE zip = '{zip}' AND age = {age}) FROM patients

-- ok: a combination of all quasi-identifiers
SELECT diagnosis FROM patients WHERE age = {age} AND zip = '{zip}' AND birth_date = '{birth_date}' AND sex = '{sex}'

-- ok: a row comparison
SELECT token FROM patients WHERE (age, zip, birth_date) = ({age}, '{zip}', '{birth_date}')

-- ok: the neighbour in the same block, told apart by payload
SELECT age, zip, birth_date, sex FROM patients WHERE token = '{token}'
SELECT age, zip, birth_date, sex FROM patients WHERE token = '{other}'

-- ok: a NULL in a quasi-identifier
SELECT token FROM patients WHERE race IS NULL ORDER BY token

-- 42501: a filter on the key
SELECT age FROM patients WHERE id = {id}

-- 42501: a filter on the name
SELECT age FROM patients WHERE name = '{name}'

-- 42501: a hidden column in a subquery of a filter
SELECT age FROM patients WHERE token IN (SELECT token FROM patients WHERE ssn LIKE '987%')
