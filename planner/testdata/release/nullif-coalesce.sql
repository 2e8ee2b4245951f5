SELECT nullif(sex, 'male'), coalesce(zip, '-'), greatest(age, 18), least(cost, 100) FROM patients
