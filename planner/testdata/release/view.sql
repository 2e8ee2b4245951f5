SELECT * FROM elderly
