SELECT make_interval(days => age) FROM patients
