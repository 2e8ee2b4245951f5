SELECT count(*) FROM patients WHERE birth_date > current_date - interval '30 years'
