SELECT ARRAY[id] FROM patients
