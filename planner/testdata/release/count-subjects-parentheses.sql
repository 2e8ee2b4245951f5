SELECT count(DISTINCT (id)), count(DISTINCT ((p.id))) FILTER (WHERE (age > 60)) AS old FROM patients p
