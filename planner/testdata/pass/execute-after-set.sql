SET search_path = x; EXECUTE by_age (1)
