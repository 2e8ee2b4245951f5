SELECT c.city, p.zip, p.age, count(*) FROM zip_city c LEFT JOIN patients p ON p.zip = c.zip GROUP BY 1, 2, 3 HAVING max(p.age) > 3
