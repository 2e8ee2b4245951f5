COPY (SELECT age FROM patients) TO '/tmp/x'
