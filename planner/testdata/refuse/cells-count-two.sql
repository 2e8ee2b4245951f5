SELECT count(DISTINCT (unit, sex)) FROM staff
