SELECT age FROM patients TABLESAMPLE system (10)
