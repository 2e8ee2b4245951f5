EXECUTE by_age (50)
