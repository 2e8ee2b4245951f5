SELECT age::int4, zip::varchar(3), ARRAY[age]::int[], '{}'::jsonb FROM patients
