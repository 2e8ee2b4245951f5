SELECT p.ctid FROM patients p
