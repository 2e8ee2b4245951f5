SELECT z.city, q.age FROM zip_city z, LATERAL (SELECT age FROM patients p WHERE p.zip = z.zip) q
