SELECT make_interval(days => id) FROM patients
