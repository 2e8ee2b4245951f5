SELECT count(*) FROM patients p WHERE tailor.certain(p.age BETWEEN 20 AND 39 AND p.birth_date < '1990-01-01')
