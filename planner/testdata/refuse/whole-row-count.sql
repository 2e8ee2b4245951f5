SELECT count(p) FROM patients p
