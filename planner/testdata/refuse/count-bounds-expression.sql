SELECT tailor.count_bounds(age + 1 >= 65) FROM patients
