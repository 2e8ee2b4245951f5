CREATE INDEX ON patients (age)
