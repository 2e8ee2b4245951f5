SELECT age FROM patients ORDER BY ctid
