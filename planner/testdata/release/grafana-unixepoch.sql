SELECT extract(epoch from birth_date)*1000 AS time, cost AS value FROM patients ORDER BY 1, 2
