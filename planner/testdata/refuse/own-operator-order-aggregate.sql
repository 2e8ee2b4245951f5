SELECT array_agg(cost ORDER BY cost USING OPERATOR(pg_temp.<)) FROM patients
