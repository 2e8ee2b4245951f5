SELECT a.age, b.age, c.sex FROM patients a, patients b, patients c WHERE a.zip = b.zip AND b.zip = c.zip LIMIT 5
