SELECT tailor.exact(name) FROM patients
