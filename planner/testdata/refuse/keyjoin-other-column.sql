SELECT p.age, e.kind FROM patients p JOIN encounters e ON p.zip = e.kind
