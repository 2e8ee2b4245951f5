SELECT tailor.count_bounds(left(zip, 2) = '35'::char(1)) FROM patients
