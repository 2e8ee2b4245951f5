SELECT count(*) FROM patients WHERE (age, sex) OPERATOR(pg_temp.<) (40, 'F')
