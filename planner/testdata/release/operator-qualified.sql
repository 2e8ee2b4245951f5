SELECT age OPERATOR(pg_catalog.+) 1 FROM patients
