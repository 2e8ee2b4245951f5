COPY (SELECT age, zip FROM patients WHERE sex = 'male') TO STDOUT WITH (FORMAT csv, HEADER)
