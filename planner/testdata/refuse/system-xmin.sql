SELECT xmin FROM patients
