SELECT count(*) FROM patients WHERE NOT (age > 30 AND sex = 'male') OR zip IS NULL
