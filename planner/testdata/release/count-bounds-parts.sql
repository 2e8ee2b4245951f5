SELECT tailor.count_bounds(left(zip, 2)::text = '35'::text AND extract(year FROM birth_date)::int = 2000) FROM patients
