SELECT p.age, count(*) FROM patients p JOIN (SELECT * FROM stays WHERE ward = 'surgery') s ON s.id = p.id GROUP BY 1
