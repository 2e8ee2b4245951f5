SELECT tailor.bounds(zip) FROM patients
