INSERT INTO patients (age) VALUES (1)
