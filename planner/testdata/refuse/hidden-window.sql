SELECT rank() OVER (ORDER BY id) FROM patients
