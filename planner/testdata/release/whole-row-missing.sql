SELECT z.city FROM zip_city z LEFT JOIN (SELECT * FROM patients WHERE age > 90) p ON p.zip = z.zip WHERE p IS NULL
