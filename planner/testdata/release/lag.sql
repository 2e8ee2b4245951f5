SELECT birth_date, lag(cost, 1, 0) OVER (ORDER BY birth_date) FROM patients
