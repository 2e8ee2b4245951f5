SELECT cost FROM patients ORDER BY cost USING OPERATOR(pg_temp.<)
