SELECT DISTINCT ON (id) age FROM patients
