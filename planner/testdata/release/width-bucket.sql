SELECT width_bucket(age, 0, 100, 10), count(*) FROM patients GROUP BY 1 ORDER BY 1
