SELECT p.age FROM patients p JOIN zip_city c ON p.zip OPERATOR(pg_temp.=) c.zip
