SELECT (sex), ( (p.age) ), count(*) FROM patients p GROUP BY 1, (age) ORDER BY (p.age)
