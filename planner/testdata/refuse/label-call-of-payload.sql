SELECT tailor.label(diagnosis) FROM patients
