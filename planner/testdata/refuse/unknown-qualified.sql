SELECT p.nothing FROM patients p
