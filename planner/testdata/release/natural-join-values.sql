SELECT sex, n FROM patients NATURAL JOIN (VALUES ('male', 1), ('female', 2)) AS v (sex, n)
