SELECT age FROM patients WHERE age OPERATOR(pg_temp.=) 40
