SELECT z.city, x.age FROM zip_city z CROSS JOIN LATERAL (SELECT age FROM patients p WHERE p.zip = z.zip ORDER BY age LIMIT 1) x
