SELECT CAST(age AS text), age::float8 / 2, birth_date::timestamp FROM patients
