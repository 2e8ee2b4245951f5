SELECT n.name, age FROM patients p JOIN names n ON n.n = p.age
