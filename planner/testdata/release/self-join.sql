SELECT a.age, b.sex FROM patients a JOIN patients b ON a.cost = b.cost
