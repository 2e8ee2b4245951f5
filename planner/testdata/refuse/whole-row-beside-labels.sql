SELECT t.sex, row_to_json(t) FROM (SELECT sex, age FROM patients) t
