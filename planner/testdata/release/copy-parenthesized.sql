COPY ((SELECT age FROM patients) UNION ALL (SELECT age FROM patients)) TO STDOUT
