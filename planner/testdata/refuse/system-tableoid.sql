SELECT tableoid::regclass FROM patients
