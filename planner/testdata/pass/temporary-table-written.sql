INSERT INTO lab VALUES (30, 'high')
