-- A synthetic hospital. No row is about a real person.
CREATE TABLE patients (
    id          integer PRIMARY KEY,
    name        text NOT NULL,
    ssn         text NOT NULL,
    birth_date  date NOT NULL,
    age         integer NOT NULL,
    sex         text NOT NULL,
    race        text,
    zip         text NOT NULL,
    ward        text NOT NULL,
    diagnosis   text NOT NULL,
    cost        numeric(10, 2) NOT NULL
);
CREATE TABLE visits (
    id          integer PRIMARY KEY,
    patient_id  integer NOT NULL REFERENCES patients,
    day         date NOT NULL,
    ward        text NOT NULL,
    cost        numeric(10, 2) NOT NULL
);
CREATE INDEX ON visits (patient_id);
-- Further conditions than the diagnosis of the patient.
CREATE TABLE diagnoses (
    patient_id  integer NOT NULL REFERENCES patients,
    code        text NOT NULL,
    PRIMARY KEY (patient_id, code)
);
CREATE TABLE zip_city (
    zip         text PRIMARY KEY,
    city        text NOT NULL
);
-- The code list, shortened to what there is here.
CREATE TABLE icd9 (
    code        text PRIMARY KEY,
    category    text NOT NULL,
    chapter     text NOT NULL
);
