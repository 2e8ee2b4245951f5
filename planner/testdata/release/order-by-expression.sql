SELECT age, cost FROM patients ORDER BY cost / age DESC NULLS LAST, 1
