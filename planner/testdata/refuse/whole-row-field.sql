SELECT (p).age FROM patients p
