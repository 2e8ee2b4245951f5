SELECT (array_agg(age))[1:3] FROM patients
