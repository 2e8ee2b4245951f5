SELECT quartile, min(cost), max(cost), avg(age) FROM (SELECT cost, age, ntile(4) OVER (ORDER BY cost, age) AS quartile FROM patients) s GROUP BY quartile ORDER BY quartile
