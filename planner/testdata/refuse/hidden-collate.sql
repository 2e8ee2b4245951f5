SELECT name COLLATE "C" FROM patients
