WITH u AS ((SELECT zip, age FROM patients UNION DISTINCT SELECT zip, age FROM patients) ORDER BY 2, zip OFFSET 2) TABLE u
