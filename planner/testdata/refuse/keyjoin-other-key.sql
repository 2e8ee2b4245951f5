SELECT p.age, e.kind FROM patients p JOIN encounters e ON p.id = e.id
