SELECT p.sex, u FROM patients p CROSS JOIN LATERAL unnest(ARRAY[p.age, 1]) AS u
