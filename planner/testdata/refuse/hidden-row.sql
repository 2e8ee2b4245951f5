SELECT ROW(id, age) FROM patients
