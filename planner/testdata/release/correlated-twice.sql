SELECT z.city, (SELECT count(*) FROM patients p WHERE p.zip = z.zip AND p.age > (SELECT avg(q.age) FROM patients q WHERE q.zip = z.zip)) FROM zip_city z
