SELECT x.age FROM (SELECT age, cost FROM patients WHERE cost > (SELECT avg(cost) FROM patients)) x
