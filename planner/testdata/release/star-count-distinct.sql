SELECT count(*), count(DISTINCT (age, sex)) FROM patients
