SELECT age FROM (SELECT age, NULL::int AS n FROM patients INTERSECT SELECT age, NULL FROM patients WHERE age > 30) i
