SELECT g.age, count(p.age) FROM generate_series(0, 120, 10) AS g(age) LEFT JOIN patients p ON p.age BETWEEN g.age AND g.age + 9 GROUP BY g.age ORDER BY g.age
