SELECT 1 FROM patients p JOIN names n ON n.name = p.name
