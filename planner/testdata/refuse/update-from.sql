UPDATE names SET n = p.age FROM patients p
