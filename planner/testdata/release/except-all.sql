SELECT age, sex FROM patients EXCEPT ALL SELECT age, sex FROM patients WHERE age > 50
