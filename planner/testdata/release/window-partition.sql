SELECT zip, age, rank() OVER (PARTITION BY zip ORDER BY age DESC) FROM patients
