SELECT tailor.certain(name = 'x' AND age > 3) FROM patients
