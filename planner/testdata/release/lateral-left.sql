SELECT z.city, x.n FROM zip_city z LEFT JOIN LATERAL (SELECT count(*) AS n FROM patients p WHERE p.zip = z.zip) x ON true
