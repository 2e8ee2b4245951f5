SELECT tailor.count_bounds(x >= 65) FROM (SELECT age AS x FROM patients) q
