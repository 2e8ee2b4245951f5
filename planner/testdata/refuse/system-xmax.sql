SELECT p.xmax FROM patients p
