SELECT p.age, t.ward FROM patients p JOIN transfers t ON p.id = t.id
