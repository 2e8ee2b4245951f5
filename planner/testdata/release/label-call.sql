SELECT tailor.label(age), tailor.exact(p.age) AS is_exact, (tailor.bounds(age)), cost FROM patients p WHERE tailor.exact(age)
