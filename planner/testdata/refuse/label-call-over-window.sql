SELECT tailor.exact(age) OVER (PARTITION BY name) FROM patients
