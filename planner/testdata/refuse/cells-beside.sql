SELECT count(*) FROM patients WHERE age > (SELECT avg(age) FROM staff)
