SELECT array_agg(p) FROM patients p
