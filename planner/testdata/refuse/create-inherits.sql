CREATE TABLE t () INHERITS (patients)
