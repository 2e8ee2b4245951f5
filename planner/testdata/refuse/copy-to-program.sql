COPY (SELECT age FROM patients) TO PROGRAM 'cat'
