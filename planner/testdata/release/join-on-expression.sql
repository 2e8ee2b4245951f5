SELECT count(*) FROM patients p JOIN names n ON n.n = p.age % 10
