SELECT string_agg(unit, ',' ORDER BY pay) FROM staff
