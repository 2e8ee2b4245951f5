SELECT z.city, anon_1.age FROM zip_city AS z JOIN LATERAL (SELECT patients.age AS age FROM patients WHERE patients.zip = z.zip ORDER BY patients.age DESC LIMIT 2) AS anon_1 ON true
