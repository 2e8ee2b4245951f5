SELECT p.age, e.kind FROM patients p, encounters e
