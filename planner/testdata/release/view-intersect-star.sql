SELECT * FROM mixed_ages WHERE age > 20 ORDER BY age LIMIT 3
