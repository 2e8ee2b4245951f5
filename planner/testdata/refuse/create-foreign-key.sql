CREATE TABLE t (p int REFERENCES patients)
