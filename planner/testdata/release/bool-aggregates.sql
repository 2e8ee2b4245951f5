SELECT bool_and(age > 0), every(sex = 'male'), bit_or(age) FROM patients
