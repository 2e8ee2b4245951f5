SELECT row_to_json(q) FROM (SELECT age FROM patients) q
