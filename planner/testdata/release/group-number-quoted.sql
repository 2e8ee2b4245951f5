SELECT "age", count(*) FROM patients GROUP BY"age"ORDER BY"age"
