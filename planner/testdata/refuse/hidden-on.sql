SELECT count(*) FROM patients p JOIN names n ON p.name = n.name
