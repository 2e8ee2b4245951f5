INSERT INTO names SELECT sex, age FROM patients
