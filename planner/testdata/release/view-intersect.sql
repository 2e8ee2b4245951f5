SELECT m.age, e.zip FROM mixed_ages m JOIN elderly e ON e.years = m.age EXCEPT SELECT age, '11101' FROM mixed_ages
