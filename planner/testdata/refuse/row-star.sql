SELECT ROW(p.*) FROM patients p
