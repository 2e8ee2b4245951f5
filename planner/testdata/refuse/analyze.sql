ANALYZE patients (age)
