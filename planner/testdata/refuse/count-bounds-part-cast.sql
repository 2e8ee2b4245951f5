SELECT tailor.count_bounds(date_trunc('year', birth_date)::text = '2000-01-01') FROM patients
