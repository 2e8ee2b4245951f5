SELECT avg(cost) FROM patients HAVING count(*) > 100
