SELECT (ARRAY[age])[id] FROM patients
