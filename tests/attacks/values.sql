-- 42501: a label of a hidden column
SELECT tailor.label(name) FROM patients

-- 0A000: a label of what is shown as it is
SELECT tailor.label(diagnosis) FROM patients

-- ok: the labels of those who share a value with the planted person
SELECT tailor.label(age), count(*) FROM patients WHERE age = {age} GROUP BY tailor.label(age)

-- ok: how exactly rows of a payload are shown
SELECT diagnosis, tailor.exact(age), tailor.bounds(age) FROM patients WHERE diagnosis = '{diagnosis}'

-- 22P02: a label that is no number for some rows
SELECT tailor.label(zip)::integer FROM patients WHERE diagnosis = '{diagnosis}'

-- ok: margins of few people
SELECT table_name, column_name, label, subjects FROM research.tailor_margins WHERE subjects < 5

-- ok: hidden columns in the list of columns
SELECT table_name, column_name, class FROM research.tailor_columns ORDER BY 1, 2

-- 42501: what margins are kept in
SELECT * FROM tailor.margin

-- 42501: an erasure by a reader
CALL tailor.erase('public.patients', '{id}')

-- 42501: the part of an erasure that writes
CALL tailor.write_erasure(ARRAY['public.patients'::regclass], ARRAY['{id}'], 'with_block', true)

-- 42501: who was erased
SELECT query_to_xml('SELECT * FROM tail' || 'or.erased', true, false, '')
