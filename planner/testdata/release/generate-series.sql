SELECT g, count(age) FROM generate_series(0, 100, 10) AS g LEFT JOIN patients ON age >= g AND age < g + 10 GROUP BY g ORDER BY g
