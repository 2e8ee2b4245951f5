SELECT ROW(age, sex), (zip, cost) FROM patients
