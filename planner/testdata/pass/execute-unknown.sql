EXECUTE patients_by_age (3)
