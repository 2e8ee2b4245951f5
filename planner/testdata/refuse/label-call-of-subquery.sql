SELECT tailor.label(q.age) FROM (SELECT age FROM patients) q
