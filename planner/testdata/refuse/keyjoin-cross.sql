SELECT p.age, e.kind FROM patients p CROSS JOIN encounters e
