SELECT z.city, count(p) FROM zip_city z LEFT JOIN (SELECT zip, age FROM patients) p ON p.zip = z.zip GROUP BY z.city
