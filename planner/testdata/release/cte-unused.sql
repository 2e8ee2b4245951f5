WITH a AS (SELECT zip FROM patients) SELECT 1
