EXECUTE by_age ((SELECT max(id) FROM patients))
