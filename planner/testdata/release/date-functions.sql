SELECT date_trunc('year', birth_date), extract(decade FROM birth_date), age(birth_date), to_char(birth_date, 'YYYY-MM') FROM patients
