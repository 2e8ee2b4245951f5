SELECT count(*) FROM patients; COPY (SELECT 1::pg_temp.d) TO STDOUT
