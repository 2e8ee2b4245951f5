SELECT city AS city, COUNT(*) AS count FROM (select p.*, z.city from patients p left join zip_city z on z.zip = p.zip) AS virtual_table GROUP BY city ORDER BY count DESC, city LIMIT 100
