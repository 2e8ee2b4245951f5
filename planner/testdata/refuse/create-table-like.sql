CREATE TABLE t (LIKE patients)
