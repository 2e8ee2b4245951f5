SELECT (SELECT count(*) FROM zip_city WHERE city = p.name) FROM patients p
