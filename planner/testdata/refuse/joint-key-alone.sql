SELECT (SELECT count(*) FROM drugs), (SELECT max(cost) FROM patients)
