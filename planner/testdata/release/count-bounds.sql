SELECT diagnosis, tailor.count_bounds(age >= 65 AND NOT (zip = '35233' OR cost > $1)) FROM patients GROUP BY diagnosis
