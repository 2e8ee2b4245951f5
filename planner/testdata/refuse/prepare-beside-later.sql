SELECT count(*) FROM patients; PREPARE zz AS SELECT 1
