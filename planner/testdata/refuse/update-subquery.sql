UPDATE names SET n = (SELECT max(age) FROM patients)
