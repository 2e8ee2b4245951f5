SELECT extract(year FROM birth_date), substring(zip FROM 1 FOR 2), age FROM patients
