SELECT array_agg(pay) FROM staff
